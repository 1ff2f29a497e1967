"""Textures, surfaces and samplers: arrays, and how kernels read them."""

import struct

import numpy

from ._native import Object


def _view(array, what):
    """An array as one of NumPy's, with the same memory."""
    if isinstance(array, numpy.ndarray):
        return array
    if isinstance(array, (list, tuple)):
        kind = type(array).__name__
        raise TypeError(f"{what}: a {kind} has no type: numpy.array([...], dtype=\"float32\")")
    is_array = hasattr(array, "__array_interface__") or not hasattr(array, "__dlpack__")
    return numpy.asarray(array) if is_array else numpy.from_dlpack(array)


def _array(array):
    """The texels as an array of NumPy's, in the order of C."""
    array = _view(array, "texels")
    if array.dtype.hasobject:
        raise TypeError("texels are objects of Python: give them a type, numpy.asarray(x, dtype=\"float32\")")
    if array.dtype.byteorder == ">":
        raise TypeError("texels: their highest byte comes first: make it x.astype(x.dtype.newbyteorder(\"=\"))")
    if not array.flags.c_contiguous:
        raise TypeError("texels do not lie one behind the other: make it numpy.ascontiguousarray(x)")
    return array


def _word(value):
    """A value of an option as the command has it: ``wrap/clamp``; bits of numbers."""
    if isinstance(value, (tuple, list)):
        return "/".join(map(_word, value))
    if isinstance(value, float):
        return str(struct.unpack("<I", struct.pack("<f", value))[0])
    return str(value)


def _words(options):
    words = []
    for name, value in options.items():
        if value is None or value is False:
            continue
        if name == "extent":
            value = "x".join(map(str, value if isinstance(value, (tuple, list)) else (value,)))
        elif name in ("bias", "minlod", "maxlod"):
            value = repr(float(value))
        name = {"format": "as", "normalized_float": "float"}.get(name, name)
        words.append((name, "" if value is True else _word(value)))
    return words


class _Described(Object):
    """What the three have in common."""

    _kind = ""

    @classmethod
    def _make(cls, array, options):
        array = None if array is None else _array(array)
        facts = () if array is None else (array, array.dtype.name, array.shape)
        made = Object.__new__(cls, cls._kind, _words(options), *facts)
        made._options = {name: value for name, value in options.items() if value is not None and value is not False}
        return made

    def _with(self, array):
        """The same of another array."""
        return type(self)._make(array, self._options)

    def __reduce__(self):
        return type(self)._make, (self.array, self._options)

    def __repr__(self):
        what = [] if self.array is None else [f"{self.array.dtype}[{'x'.join(map(str, self.array.shape))}]"]
        return f"<ptxvm.{type(self).__name__} {', '.join(what + [f'{k}={v!r}' for k, v in self._options.items()])}>"


class Texture(_Described):
    """An array as an image that kernels sample: an argument for a parameter that takes a ``cudaTextureObject_t``.

    >>> texture = ptxvm.Texture(picture, filter="linear", address="wrap", normalized=True)
    >>> kernel[grid, block](texture, out)

    The array is used as it is when the kernel is launched. Its last axis are the texels of a row, as NumPy counts; with ``channels`` of 2 or 4 the
    axis behind that may have the channels. Texels are unsigned or signed integers of 8, 16 or 32 bits, ``float16`` or ``float32``.

    - ``geometry``: ``"1d"``, ``"2d"``, ``"3d"``, ``"a1d"``, ``"a2d"`` (layers), ``"cube"``, ``"acube"``, ``"2dms"``, ``"a2dms"`` (samples), ``"linear"``;
      otherwise by the number of axes.
    - ``format``: what a channel is, if not the array's type: ``"unorm8"``, ``"unorm16"``, ``"snorm8"``, ``"snorm16"`` among others.
    - ``extent``, ``layers``, ``levels``, ``samples``: slices, rows and columns, and the rest, where the shape does not say it.
    - ``filter`` within a level, ``mipfilter`` between levels: ``"point"`` or ``"linear"``. Integers are never filtered.
    - ``address``: ``"clamp"``, ``"wrap"``, ``"mirror"`` or ``"border"``, or one for each dimension; ``"wrap"`` and ``"mirror"`` are for normalised coordinates.
    - ``normalized``: coordinates from 0 to 1, instead of numbers of texels. ``normalized_float``: integers of 8 and 16 bits are read as 0 to 1, or -1 to 1.
    - ``srgb``, ``seamless``, ``border`` (a number for each channel), ``bias``, ``minlod``, ``maxlod``: as in CUDA's texture descriptor.

    Raises ``ValueError`` when there is no such image, ``TypeError`` when the array cannot be used.
    """

    _kind = "texture"

    def __new__(
        cls,
        array,
        *,
        geometry=None,
        channels=None,
        format=None,
        extent=None,
        layers=None,
        levels=None,
        samples=None,
        filter=None,
        mipfilter=None,
        address=None,
        normalized=False,
        normalized_float=False,
        srgb=False,
        seamless=False,
        border=None,
        bias=None,
        minlod=None,
        maxlod=None,
    ):
        options = {name: value for name, value in locals().items() if name not in ("cls", "array", "__class__")}
        return cls._make(array, options)


class Surface(_Described):
    """An array as an image that kernels read and write in place: an argument for a parameter that takes a ``cudaSurfaceObject_t``.

    Options say how its texels lie, as those of :class:`Texture`.
    """

    _kind = "surface"

    def __new__(cls, array, *, geometry=None, channels=None, format=None, extent=None, layers=None):
        options = {name: value for name, value in locals().items() if name not in ("cls", "array", "__class__")}
        return cls._make(array, options)


class Sampler(_Described):
    """How textures are sampled, in modules of ``.target texmode_independent``. Options are those of :class:`Texture`."""

    _kind = "sampler"

    def __new__(
        cls,
        *,
        filter=None,
        mipfilter=None,
        address=None,
        normalized=False,
        seamless=False,
        border=None,
        bias=None,
        minlod=None,
        maxlod=None,
    ):
        options = {name: value for name, value in locals().items() if name not in ("cls", "__class__")}
        return cls._make(None, options)
