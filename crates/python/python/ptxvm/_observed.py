"""What a launch saw: findings of tools, the steps of a thread, the writes to elements, and where a NaN comes from."""

import json
import math
import struct
from typing import Any, NamedTuple, Optional, Union

from ._error import Error


class Original(NamedTuple):
    """A place in the source that a compiler made the PTX from. ``inlined_at`` are the calls that it was inlined by, innermost first."""

    file: str
    line: int
    column: int
    inlined_at: list


class Site(NamedTuple):
    """A place of a finding, with the thread that was there."""

    file: str
    line: int
    column: int
    original: Optional[Original]
    block: tuple
    thread: tuple
    access: str


class Finding(NamedTuple):
    """What a tool found. Its text shows the lines, as the command does."""

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
    count: int
    places: int
    rendered: str

    def __str__(self):
        return self.rendered.rstrip()


class Value(NamedTuple):
    """The value of a register: its type in PTX, its bits, and what they mean. A packed value is a tuple, lowest first."""

    type: str
    bits: int
    value: Any


class Address(NamedTuple):
    """An address, and the element of an argument there: ``"2[17]"``."""

    space: str
    address: int
    element: Optional[str]


class Step(NamedTuple):
    """An instruction that a thread executed, with the values that it read and wrote. Its text is a line, as the command prints it."""

    file: str
    line: int
    column: int
    original: Optional[Original]
    text: str
    executes: bool
    reads: dict
    writes: dict
    address: Optional[Address]
    rendered: str

    def __str__(self):
        return self.rendered


class Write(NamedTuple):
    """A write to a watched element. ``before`` and ``after`` are ``None`` where threads wrote in the same step."""

    file: str
    line: int
    column: int
    original: Optional[Original]
    text: str
    block: tuple
    thread: tuple
    before: Any
    after: Any


class Watched(NamedTuple):
    """A watched element: how often it was written, and the last writes."""

    element: str
    address: int
    bytes: int
    count: int
    writes: list
    rendered: str

    def __str__(self):
        return self.rendered


class Origin(NamedTuple):
    """The instruction that a number comes from, in the thread that executed it first. ``count`` is how often it made such numbers."""

    file: str
    line: int
    column: int
    original: Optional[Original]
    text: str
    count: int
    source: str
    block: tuple
    thread: tuple
    reads: dict
    writes: dict
    address: Optional[Address]


class Passage(NamedTuple):
    """An instruction that passed a number on, how often, and where it stored it first."""

    file: str
    line: int
    column: int
    original: Optional[Original]
    text: str
    count: int
    stored: Optional[Address]


class Flow(NamedTuple):
    """Where the first NaN, or the first infinity, comes from, and what passed it on. ``others`` are further origins of such numbers."""

    number: str
    origin: Origin
    passages: list
    others: list
    rendered: str

    def __str__(self):
        return self.rendered


for _class in (Original, Site, Finding, Value, Address, Step, Write, Watched, Origin, Passage, Flow):
    _class.__module__ = "ptxvm"


def raise_for_findings(findings):
    """See :meth:`ptxvm.Report.raise_for_findings`."""
    if findings is None:
        raise ValueError("the launch ran no tools: tool=\"racecheck,initcheck\"")
    errors = [finding for finding in findings if finding.severity == "error"]
    if not errors:
        return
    first = errors[0]
    raise Error(
        "\n".join(map(str, errors)),
        code=first.code,
        message=first.message,
        file=first.first.file,
        line=first.first.line,
        column=first.first.column,
        kernel=first.kernel,
        block=first.first.block,
        thread=first.first.thread,
        address=first.address,
        findings=findings,
    )


#: Elements that one launch may watch.
_MOST_ELEMENTS = 256


def elements(watch):
    """What ``watch=`` names: whether it is on the host, and the address, the size and the type of each element."""
    found = []
    for one in watch if isinstance(watch, list) else [watch]:
        if _is_number(one):
            found.append((False, int(one), 4, ""))
        elif not isinstance(one, tuple) or len(one) != 2:
            what = "an element or several: (y, 17), (y, (2, 0)), (y, slice(3, 9)), a list of them, or an address"
            raise TypeError(f"watch= is {what}")
        elif _is_number(one[0]):
            address, size = map(int, one)
            if not 1 <= size <= 16:
                raise ValueError(f"watch=: 1 to 16 bytes can be watched at an address, not {size}")
            found.append((False, address, size, ""))
        else:
            found.extend(_of_array(*one))
        if len(found) > _MOST_ELEMENTS:
            raise ValueError(f"watch=: {_MOST_ELEMENTS} elements can be watched")
    return found


def _is_number(value):
    import numpy

    # Arrays have `__index__`, too.
    return isinstance(value, (int, numpy.integer))


def _of_array(array, index):
    import numpy

    from ._texture import _view

    view = _view(array, "watch=")
    index = index if isinstance(index, tuple) else (index,)
    if not all(part is Ellipsis or isinstance(part, slice) or _is_number(part) for part in index):
        raise TypeError(f"watch=: an index has numbers and slices, as numpy has them: not {index!r}")
    # With an ellipsis the result is a view, which has an address.
    part = view[index if Ellipsis in index else (*index, Ellipsis)]
    if part.size > _MOST_ELEMENTS:
        raise ValueError(f"watch=: {_MOST_ELEMENTS} elements can be watched, not {part.size}")
    start = part.__array_interface__["data"][0]
    for place in numpy.ndindex(part.shape):
        offset = sum(at * stride for at, stride in zip(place, part.strides))
        yield True, start + offset, part.itemsize, part.dtype.name


def _thread(index, block):
    x, y, _ = block
    return (index % x, index // x % y, index // (x * y))


def _original(place):
    if place is None:
        return None
    outer = [Original(one["file"], one["line"], one["column"], []) for one in place["inlined_at"]]
    return Original(place["file"], place["line"], place["column"], outer)


def _place(of):
    return of["file"], of["line"], of["column"], _original(of["original"])


def _address(of):
    return None if of is None else Address(of["space"], of["address"], of["element"])


def _site(of, block):
    if of is None:
        return None
    return Site(*_place(of), tuple(of["block"]), _thread(of["thread"], block), of["access"])


def findings(text, block):
    """The findings of tools."""
    made = []
    for of in json.loads(text):
        sides = {side: _site(of[side], block) for side in ("first", "second")}
        made.append(Finding(**{name: sides.get(name, of[name]) for name in Finding._fields}))
    return made


_FLOATS = {"f16": ("<H", "<e"), "f32": ("<I", "<f"), "f64": ("<Q", "<d")}


def _number(kind, bits, shown) -> Union[bool, int, float, tuple, str]:
    """What bits mean; the text of it for the small formats."""
    for packed in ("x2", "x4"):
        element = kind[: -len(packed)]
        if kind.endswith(packed) and element in (*_FLOATS, "bf16", "u8", "s8", "u16", "s16"):
            lanes = int(packed[1:])
            width = {"bf16": 16}.get(element) or int(element[1:])
            mask = (1 << width) - 1
            return tuple(_number(element, bits >> lane * width & mask, None) for lane in range(lanes))
    if kind == "pred":
        return bool(bits)
    if kind in _FLOATS:
        raw, value = _FLOATS[kind]
        return struct.unpack(value, struct.pack(raw, bits))[0]
    if kind in ("bf16", "tf32"):
        return _number("f32", bits << 16 if kind == "bf16" else bits, None)
    if kind[:1] in "us" and kind[1:].isdigit() or kind[:1] == "b" and kind[1:].isdigit():
        size = int(kind[1:])
        return bits - (1 << size) if kind[0] == "s" and bits >> size - 1 else bits
    try:
        number = float(shown)
    except ValueError:
        return shown
    return math.nan if math.isnan(number) else number


def _values(of):
    values = {}
    for one in of:
        bits = int(one["bits"], 16)
        values[one["name"]] = Value(one["type"], bits, _number(one["type"], bits, one["value"]))
    return values


def trace(text, block):
    """The steps of a thread."""
    return [
        Step(
            *_place(of),
            of["text"],
            of["executes"],
            _values(of["reads"]),
            _values(of["writes"]),
            _address(of["address"]),
            of["rendered"],
        )
        for of in json.loads(text)
    ]


def watch(text, block, types):
    """The watched elements, whose types are these, or ``None`` for bytes at an address."""
    return [_watched(of, block, kind) for of, kind in zip(json.loads(text), types)]


def _watched(of, block, kind):
    def value(bits):
        if bits is None:
            return None
        number = int(bits, 16)
        return number if kind is None else _element(number, of["bytes"], kind)

    writes = [
        Write(
            *_place(one),
            one["text"],
            tuple(one["block"]),
            _thread(one["thread"], block),
            value(one["before"]),
            value(one["after"]),
        )
        for one in of["writes"]
    ]
    return Watched(of["element"], of["address"], of["bytes"], of["count"], writes, of["rendered"])


def _element(bits, size, kind):
    """An element of an array, as NumPy has it."""
    import numpy

    from ._types import element_type

    try:
        return numpy.frombuffer(bits.to_bytes(size, "little"), element_type(kind))[0]
    except (TypeError, ValueError):
        # A structure has no name that says what it is.
        return bits


def _counted(of):
    return Passage(*_place(of), of["text"], of["count"], _address(of.get("stored")))


def first_nan(text, block):
    """The flows of the first NaN and the first infinity."""
    return [_flow(of, block) for of in json.loads(text)]


def _flow(of, block):
    origin = of["origin"]
    made = Origin(
        *_place(origin),
        origin["text"],
        origin["count"],
        origin["source"],
        tuple(origin["block"]),
        _thread(origin["thread"], block),
        _values(origin["reads"]),
        _values(origin["writes"]),
        _address(origin["address"]),
    )
    return Flow(of["number"], made, list(map(_counted, of["passages"])), list(map(_counted, of["others"])), of["rendered"])
