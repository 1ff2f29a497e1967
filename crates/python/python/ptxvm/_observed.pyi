from typing import Any, NamedTuple, Optional

_Place = tuple[int, int, int]

class Original(NamedTuple):
    file: str
    line: int
    column: int
    inlined_at: list[Original]

class Site(NamedTuple):
    file: str
    line: int
    column: int
    original: Optional[Original]
    block: _Place
    thread: _Place
    access: str

class Finding(NamedTuple):
    tool: str
    code: str
    severity: str
    space: Optional[str]
    kernel: str
    message: str
    address: Optional[int]
    allocation: Optional[str]
    first: Site
    second: Optional[Site]
    missing: str
    count: int  # type: ignore[assignment]
    places: int
    rendered: str

class Value(NamedTuple):
    type: str
    bits: int
    value: Any

class Address(NamedTuple):
    space: str
    address: int
    element: Optional[str]

class Step(NamedTuple):
    file: str
    line: int
    column: int
    original: Optional[Original]
    text: str
    executes: bool
    reads: dict[str, Value]
    writes: dict[str, Value]
    address: Optional[Address]
    rendered: str

class Write(NamedTuple):
    file: str
    line: int
    column: int
    original: Optional[Original]
    text: str
    block: _Place
    thread: _Place
    before: Any
    after: Any

class Watched(NamedTuple):
    element: str
    address: int
    bytes: int
    count: int  # type: ignore[assignment]
    writes: list[Write]
    rendered: str

class Origin(NamedTuple):
    file: str
    line: int
    column: int
    original: Optional[Original]
    text: str
    count: int  # type: ignore[assignment]
    source: str
    block: _Place
    thread: _Place
    reads: dict[str, Value]
    writes: dict[str, Value]
    address: Optional[Address]

class Passage(NamedTuple):
    file: str
    line: int
    column: int
    original: Optional[Original]
    text: str
    count: int  # type: ignore[assignment]
    stored: Optional[Address]

class Flow(NamedTuple):
    number: str
    origin: Origin
    passages: list[Passage]
    others: list[Passage]
    rendered: str

def raise_for_findings(findings: Optional[list[Finding]]) -> None: ...
def elements(watch: Any) -> list[tuple[bool, int, int, str]]: ...
def findings(text: str, block: _Place) -> list[Finding]: ...
def trace(text: str, block: _Place) -> list[Step]: ...
def watch(text: str, block: _Place, types: list[Optional[str]]) -> list[Watched]: ...
def first_nan(text: str, block: _Place) -> list[Flow]: ...
