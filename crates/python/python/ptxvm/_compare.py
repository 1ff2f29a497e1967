"""A kernel against a function of NumPy's: what the fixture ``ptx`` of the pytest plugin has."""

import os

import numpy

from . import Module
from ._error import Error
from ._texture import Surface, Texture
from ._types import element_type
from .jobs import _copy

#: Elements of a kind that goes wrong most often: none, one, around a warp and a block, several dimensions.
SHAPES = ((1,), (31,), (32,), (33,), (257,), (1000,), (13, 17))
_SHOWN = 8


class _Role:
    """What an argument of a comparison is to the kernel and to the function."""

    def __init__(self, name, given, written, fill=None, wrap=lambda array: array):
        self.name, self.given, self.written, self.fill, self.wrap = name, given, written, fill, wrap

    def __repr__(self):
        return f"ptx.{self.name}"


class _Case:
    """One shape and one type of elements."""

    def __init__(self, shape, dtype, seed):
        self.shape, self.dtype, self.seed = shape, element_type(dtype), seed
        self.size = int(numpy.prod(shape))

    def __str__(self):
        return f"{self.dtype}[{'x'.join(map(str, self.shape))}]"


def edge_values(dtype):
    """Values at which kernels go wrong: of floats zeros of both signs, subnormals, the ends of the range, infinities and NaN."""
    dtype = element_type(dtype)
    if dtype.kind == "b":
        return numpy.array([False, True])
    if dtype.kind in "iu":
        info = numpy.iinfo(dtype)
        return numpy.array([0, 1, info.max, info.min, info.max - 1, info.min + 1, info.max // 2], dtype)
    if dtype.kind == "c":
        raise TypeError("there are no complex numbers in PTX")
    bits, unsigned = dtype.itemsize * 8, numpy.dtype(f"u{dtype.itemsize}")
    try:
        info = numpy.finfo(dtype)
    except ValueError:
        import ml_dtypes

        info = ml_dtypes.finfo(dtype)
    values = [0, 1, -1, float(info.max), float(info.min), float(info.tiny), 0.5, 3]
    values = numpy.array(values).astype(dtype)
    special = numpy.array([numpy.inf, -numpy.inf, numpy.nan]).astype(dtype)
    subnormal = numpy.array([1, 1 | 1 << bits - 1, 1 << bits - 1], unsigned).view(dtype)
    return numpy.concatenate([values, special, subnormal])


def values(shape, dtype, seed=0, edges=True):
    """Random values of a type, from a seed, with the edge values among them."""
    dtype, size = element_type(dtype), int(numpy.prod(shape))
    random = numpy.random.default_rng(seed)
    if dtype.kind == "b":
        array = random.integers(0, 2, size).astype(dtype)
    elif dtype.kind in "iu":
        info = numpy.iinfo(dtype)
        array = random.integers(info.min, info.max, size, dtype, endpoint=True)
    else:
        array = random.normal(0, 4, size).astype(dtype)
    if edges and size:
        special = edge_values(dtype)
        places = random.permutation(size)[: len(special)]
        array[places] = special[: len(places)]
    return array.reshape(shape)


class Kernels:
    """The fixture ``ptx``."""

    #: Roles of arguments: an array of the case's shape and type that the function is given; one that it is also to return; one of
    #: zeros that it is to return; the number of elements; the number of elements of an axis.
    input = _Role("input", given=True, written=False)
    inout = _Role("inout", given=True, written=True)
    output = _Role("output", given=False, written=True)
    size = _Role("size", given=False, written=False, fill=lambda case: case.size)

    def __init__(self, thorough=False, test_file=None):
        self.thorough = thorough
        self._folder = os.path.dirname(os.fspath(test_file)) if test_file else os.getcwd()

    def module(self, source, **options):
        """A module: a path, also beside the test, or text."""
        if isinstance(source, str) and "\n" not in source and ".version" not in source and not os.path.exists(source):
            source = os.path.join(self._folder, source)
        return Module(source, **options)

    def kernel(self, source, name=None, **options):
        """A kernel of a module; its only one if it is not named."""
        module = self.module(source, **options)
        names = module.kernels
        if name is None and len(names) != 1:
            raise Error(f"say which kernel; there are {', '.join(names)}", code="no-such-name")
        return module[name or names[0]]

    @staticmethod
    def values(shape, dtype, seed=0, edges=True):
        """Random values of a type, from a seed, with the edge values among them."""
        return values(shape, dtype, seed, edges)

    @staticmethod
    def edge_values(dtype):
        """Values at which kernels go wrong."""
        return edge_values(dtype)

    @staticmethod
    def extent(axis):
        """The extent of an axis of the case's shape, as an argument."""
        return _Role(f"extent({axis})", False, False, lambda case: case.shape[axis])

    @staticmethod
    def texture(**options):
        """An array that the function is given, and the kernel as a :class:`ptxvm.Texture` with these options."""
        return _Role("texture", True, False, wrap=lambda array: Texture(array, **options))

    @staticmethod
    def surface(**options):
        """An array that the function is given and returns, and that is a :class:`ptxvm.Surface` with these options for the kernel."""
        return _Role("surface", True, True, wrap=lambda array: Surface(array, **options))

    def compare(
        self,
        kernel,
        function,
        *arguments,
        shapes=SHAPES,
        dtypes=("float32",),
        grid=None,
        block=256,
        shared=0,
        rtol=0.0,
        atol=0.0,
        edges=True,
        seed=0,
        **options,
    ):
        """Runs the kernel on every shape and type, and compares what it wrote with what the function returns.

        The function gets the arguments that are ``ptx.input``, ``ptx.inout``, arrays or numbers, in order, and returns the new
        contents of those that are ``ptx.inout`` or ``ptx.output``: one array, or as many. The default is bit for bit, but that any NaN is as
        good as another. ``grid`` is a function of the case, or covers its elements with blocks. With ``tool`` errors that the tools
        find are raised.
        """
        # What is of interest is the test, and what differs.
        __tracebackhide__ = True
        for dtype in dtypes if isinstance(dtypes, (tuple, list)) else (dtypes,):
            for shape in shapes:
                case = _Case(shape if isinstance(shape, tuple) else (shape,), dtype, seed)
                for how in self._ways(options):
                    self._case(kernel, function, arguments, case, grid, block, shared, rtol, atol, edges, how)

    def _ways(self, options):
        yield options
        if self.thorough:
            yield {**{name: value for name, value in options.items() if name != "tool"}, "engine": "reference"}
            for seed in range(3):
                yield {**options, "schedule": seed}

    def _case(self, kernel, function, arguments, case, grid, block, shared, rtol, atol, edges, options):
        __tracebackhide__ = True
        given, passed, written = [], [], []
        for index, argument in enumerate(arguments):
            if isinstance(argument, _Role) and argument.fill is None:
                if argument.given:
                    array = values(case.shape, case.dtype, case.seed + index, edges)
                    given.append(array.copy())
                else:
                    array = numpy.zeros(case.shape, case.dtype)
                if argument.written:
                    written.append(index)
                passed.append(argument.wrap(array))
            elif isinstance(argument, _Role):
                passed.append(argument.fill(case))
            else:
                argument = argument.copy() if isinstance(argument, numpy.ndarray) else argument
                given.append(argument)
                passed.append(argument)
        threads = int(numpy.prod(block)) if not isinstance(block, int) else block
        blocks = grid(case) if callable(grid) else grid if grid is not None else max(1, -(-case.size // threads))
        launcher = kernel[blocks, block, shared]
        before = [_copy(argument) for argument in passed]
        report = launcher(*passed, **options)
        if options.get("tool"):
            report.raise_for_findings()
        with numpy.errstate(all="ignore"):
            wanted = function(*given)
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        if len(wanted) != len(written):
            raise TypeError(f"the function returns {len(wanted)} arrays, and {len(written)} are written")
        for index, expected in zip(written, wanted):
            got = passed[index].array if isinstance(passed[index], Surface) else passed[index]
            expected = numpy.asarray(expected)
            if expected.shape not in ((), got.shape):
                raise ValueError(f"the function returns an array of shape {expected.shape} for one of {got.shape}")
            expected = numpy.broadcast_to(expected.astype(got.dtype), got.shape)
            differs = _differs(got, expected, rtol, atol)
            if differs.any():
                raise AssertionError(_report(kernel, launcher, case, index, got, expected, differs, before, options))


def _differs(got, expected, rtol, atol):
    unsigned = numpy.dtype(f"u{got.dtype.itemsize}")
    same = numpy.ascontiguousarray(got).view(unsigned) == numpy.ascontiguousarray(expected).view(unsigned)
    if got.dtype.kind in "biu":
        return ~same
    same |= numpy.isnan(got) & numpy.isnan(expected)
    if rtol or atol:
        with numpy.errstate(all="ignore"):
            same |= numpy.isclose(got.astype("f8"), expected.astype("f8"), rtol, atol)
    return ~same


def _bits(value):
    digits = value.dtype.itemsize * 2
    return f"0x{int(value.view(numpy.dtype(f'u{value.dtype.itemsize}'))):0{digits}x}"


def _report(kernel, launcher, case, index, got, expected, differs, before, options):
    """What is different, as bits, and who wrote it."""
    places = numpy.argwhere(differs)
    name = kernel.parameters[index][0]
    lines = [
        f"kernel {kernel.name} on {case}: {len(places)} of {got.size} elements of argument {index} (`{name}`) differ"
    ]
    if options:
        lines.append("with " + ", ".join(f"{key}={value}" for key, value in options.items()))
    shown = [tuple(place) for place in places[:_SHOWN]]
    options = {key: value for key, value in options.items() if key not in ("engine", "tool", "undefined")}
    array = before[index].array if isinstance(before[index], Surface) else before[index]
    try:
        watched = launcher(*before, watch=[(array, place) for place in shown], **options).watch
    except Error as error:
        watched = error.watch
    writers = [one.writes[-1] if one.writes else None for one in watched] if watched else [None] * len(shown)
    for place, writer in zip(shown, writers):
        at = ", ".join(map(str, place))
        lines.append(
            f"  [{at}]  got {got[place]} = {_bits(got[place])}, expected {expected[place]} = {_bits(expected[place])}"
        )
        if writer is None:
            lines.append("        nobody wrote it")
        else:
            where = f"block {writer.block}, thread {writer.thread}"
            lines.append(f"        written by {writer.file}:{writer.line}: {writer.text}  ({where})")
    if len(places) > _SHOWN:
        lines.append(f"  and {len(places) - _SHOWN} more")
    return "\n".join(lines)
