from collections.abc import Iterable
from os import PathLike
from typing import Any, NamedTuple, Optional, Union

from ._native import Launcher, Report

class Line(NamedTuple):
    file: str
    line: int
    text: str
    source: Optional[str]
    executions: int
    threads: int
    active_lanes: float
    diverged: int
    vector: int
    broadcast: int
    gather: int
    seconds: float
    share: float

class Profile(list[Line]):
    report: Optional[Report]
    table: str
    page: str
    def __init__(
        self, lines: Iterable[Line] = (), report: Optional[Report] = None, table: str = "", page: str = ""
    ) -> None: ...
    def hottest(self, count: int = 10) -> list[Line]: ...
    def save(self, path: Union[str, PathLike[str]]) -> None: ...
    def divergence(self) -> str: ...

def run(launcher: Launcher, arguments: tuple[Any, ...], options: dict[str, Any]) -> Profile: ...
