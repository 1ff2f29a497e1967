"""One instruction on whole arrays."""

import functools

import numpy

from ._native import Instruction

_UNSIGNED = {8: numpy.uint8, 16: numpy.uint16, 32: numpy.uint32, 64: numpy.uint64}
_TYPES = {
    "pred": numpy.bool_,
    "f16": numpy.float16,
    "f32": numpy.float32,
    "f64": numpy.float64,
    **{f"s{bits}": getattr(numpy, f"int{bits}") for bits in _UNSIGNED},
    **{f"{kind}{bits}": dtype for bits, dtype in _UNSIGNED.items() for kind in "ub"},
}
_SMALL = {"bf16": "bfloat16", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}

_instruction = functools.lru_cache(maxsize=1024)(Instruction)


def _dtype(name):
    """The type of NumPy's, or of ml_dtypes', that a type of PTX is; None if there is none here."""
    if name in _TYPES:
        return numpy.dtype(_TYPES[name])
    if name in _SMALL:
        try:
            import ml_dtypes
        except ImportError:
            return None
        return numpy.dtype(getattr(ml_dtypes, _SMALL[name]))
    return None


def _element(description):
    """Element type and number of the lanes of a packed operand; None if they are no elements of an array."""
    _, _, bits, lanes, element = description
    dtype = _dtype(element)
    if lanes > 1 and dtype is not None and dtype.itemsize * 8 * lanes == bits:
        return dtype, lanes
    return None


def _wrong(description, what):
    name, ty, *_ = description
    return TypeError(f"operand {name} is .{ty}: {what}")


def _operand(value, description):
    """The bits of an operand: an array of unsigned integers, or of bool."""
    name, ty, bits, _, _ = description
    plain, packed = _dtype(ty), _element(description)
    raw = numpy.dtype(numpy.bool_ if ty == "pred" else _UNSIGNED[bits])
    if not isinstance(value, (numpy.ndarray, numpy.generic)):
        if hasattr(value, "__array_interface__") or hasattr(value, "__dlpack__"):
            value = numpy.asarray(value)
        elif packed and numpy.ndim(value) > 0 and numpy.shape(value)[-1] == packed[1]:
            value = numpy.asarray(value).astype(packed[0])
        elif plain is not None and plain.kind not in "biu":
            value = numpy.asarray(value).astype(plain)
        else:
            value = _integers(value, plain if plain is not None else raw, description)
    value = numpy.asarray(value)
    if value.dtype.hasobject:
        raise _wrong(description, "no array of objects")
    if value.dtype.byteorder == ">":
        raise _wrong(description, "its highest byte comes first: make it x.astype(x.dtype.newbyteorder(\"=\"))")
    if ty == "pred":
        if value.dtype.kind not in "biu":
            raise _wrong(description, f"no array of {value.dtype}")
        return value.astype(numpy.bool_)
    if packed and value.dtype == packed[0] and value.ndim and value.shape[-1] == packed[1]:
        return numpy.ascontiguousarray(value).view(raw)[..., 0]
    if value.dtype == plain or (value.dtype.itemsize == raw.itemsize and value.dtype.kind in "iu"):
        return value.view(raw)
    if plain is None or plain.kind in "u" and ty.startswith("b") and value.dtype.itemsize == raw.itemsize:
        return value.view(raw)
    wanted = f"an array of {plain if plain is not None else raw}, or of {raw} with its bits"
    raise _wrong(description, f"{wanted}, not of {value.dtype}")


def _integers(value, dtype, description):
    """Integers of either sign, as long as they have no more bits."""
    wide = numpy.asarray(value, dtype=object)
    limit = 1 << dtype.itemsize * 8
    for number in wide.flat:
        if not isinstance(number, (int, numpy.integer, bool)):
            raise _wrong(description, f"an integer, not {number!r}")
        if not -(limit >> 1) <= number < limit:
            raise OverflowError(f"operand {description[0]} is {number}, which has more than {dtype.itemsize * 8} bits")
    unsigned = numpy.dtype(f"u{dtype.itemsize}") if dtype.kind != "b" else dtype
    bits = [int(number) % limit for number in wide.flat]
    return numpy.array(bits, unsigned).reshape(wide.shape).view(dtype)


def _result(bits, shape, description):
    packed, plain = _element(description), _dtype(description[1])
    if packed:
        return bits.view(packed[0]).reshape(*shape, packed[1])
    value = (bits if plain is None else bits.view(plain)).reshape(shape)
    return value[()] if not shape else value


def evaluate(mnemonic, operands, target=None, plain=False):
    """See :func:`ptxvm.evaluate`. ``plain`` computes element by element, as the meaning of the instruction is written down."""
    instruction = _instruction(mnemonic, len(operands), target)
    for description in (*instruction.sources, *instruction.results):
        if description[1] != "pred" and description[2] not in _UNSIGNED:
            raise _wrong(description, "there are no arrays of such")
    sources = [_operand(value, source) for value, source in zip(operands, instruction.sources)]
    shape = numpy.broadcast_shapes(*(source.shape for source in sources))
    count = int(numpy.prod(shape, dtype=object)) if shape else 1
    flat = [
        numpy.ascontiguousarray(source.reshape(-1) if source.size == 1 else numpy.broadcast_to(source, shape)).reshape(-1)
        for source in sources
    ]
    results = [
        numpy.empty(count, numpy.bool_ if ty == "pred" else _UNSIGNED[bits])
        for _, ty, bits, _, _ in instruction.results
    ]
    if count:
        instruction.run(count, flat, results, plain)
    values = [_result(bits, shape, result) for bits, result in zip(results, instruction.results)]
    return values[0] if len(values) == 1 else tuple(values)
