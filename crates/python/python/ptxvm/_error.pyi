from collections.abc import Iterable
from typing import NamedTuple, Optional

from ._observed import Finding, Flow, Step, Watched

class Diagnostic(NamedTuple):
    code: str
    severity: str
    message: str
    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    help: Optional[str]
    notes: list[str]
    labels: list[tuple[int, int, str]]
    rendered: str

class Error(Exception):
    rendered: str
    code: str
    message: str
    file: Optional[str]
    line: Optional[int]
    column: Optional[int]
    kernel: Optional[str]
    block: Optional[tuple[int, ...]]
    thread: Optional[tuple[int, ...]]
    address: Optional[int]
    diagnostics: list[Diagnostic]
    findings: Optional[list[Finding]]
    trace: Optional[list[Step]]
    watch: Optional[list[Watched]]
    first_nan: Optional[list[Flow]]
    def __init__(
        self,
        rendered: str,
        *,
        code: str = "error",
        message: Optional[str] = None,
        file: Optional[str] = None,
        line: Optional[int] = None,
        column: Optional[int] = None,
        kernel: Optional[str] = None,
        block: Optional[Iterable[int]] = None,
        thread: Optional[Iterable[int]] = None,
        address: Optional[int] = None,
        diagnostics: Iterable[Diagnostic] = (),
        findings: Optional[list[Finding]] = None,
        trace: Optional[list[Step]] = None,
        watch: Optional[list[Watched]] = None,
        first_nan: Optional[list[Flow]] = None,
    ) -> None: ...

class ArgumentError(Error, TypeError): ...
class KernelNotFoundError(Error, KeyError): ...
