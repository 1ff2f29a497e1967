"""Arrays as arguments: what has a buffer, an interface or DLPack, and what kernels cannot use."""

import array
import ctypes
import sys

import ml_dtypes
import numpy
import pytest
from conftest import HEAD, SAXPY, arguments

import ptxvm


def test_arrays_are_used_in_place():
    module = ptxvm.Module(SAXPY)
    x, y = arguments()
    report = module["saxpy"][4, 256](1000, 2.0, x, y)
    assert numpy.array_equal(y, 2 * x + numpy.float32(0.5))
    assert report.thread_instructions > 10_000 and report.seconds > 0


def test_overlapping_views_see_each_other():
    module = ptxvm.Module(SAXPY)
    data = numpy.ones(1064, numpy.float32)
    module["saxpy"][4, 256](1000, 2.0, data[:1000], data[64:])
    assert data[64] == 3 and data[0] == 1
    # Block by block, each reads what those before wrote.
    expected = numpy.ones(1064, numpy.float32)
    module["saxpy"][4, 256](0, 2.0, data, data)
    assert data.min() == 1 and expected.shape == data.shape


def test_one_array_for_two_parameters():
    data = numpy.arange(256, dtype=numpy.float32)
    ptxvm.launch(SAXPY, 256, 2.0, data, data, block=256)
    assert numpy.array_equal(data, 3 * numpy.arange(256, dtype=numpy.float32))


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_arrays_of_small_floats(dtype):
    dtype = numpy.dtype(getattr(ml_dtypes, dtype))
    copy = HEAD + f""".visible .entry copy(.param .u64 x, .param .u64 y) {{
        .reg .b32 %i;  .reg .b64 %p, %q;  .reg .b16 %v;
        mov.u32 %i, %tid.x;
        ld.param.u64 %p, [x];  ld.param.u64 %q, [y];
        mad.wide.u32 %p, %i, {dtype.itemsize}, %p;  mad.wide.u32 %q, %i, {dtype.itemsize}, %q;
        ld.global.b{dtype.itemsize * 8} %v, [%p];
        st.global.b{dtype.itemsize * 8} [%q], %v;
        ret; }}"""
    x = numpy.linspace(-2, 2, 32).astype(dtype)
    y = numpy.zeros(32, dtype)
    ptxvm.launch(copy, x, y, block=32)
    assert numpy.array_equal(x.view(numpy.uint8), y.view(numpy.uint8))


def test_other_buffers():
    x = array.array("f", range(32))
    y = bytearray(32 * 4)
    ptxvm.launch(SAXPY, 32, 2.0, x, y, block=32)
    assert memoryview(y).cast("f").tolist() == [2.0 * i for i in range(32)]
    z = (ctypes.c_float * 32)()
    ptxvm.launch(SAXPY, 32, 1.0, memoryview(x), z, block=32)
    assert list(z) == list(range(32))


class Interface:
    """What has `__array_interface__` and no buffer."""

    def __init__(self, array, **changes):
        self.array = array
        self.__array_interface__ = {**array.__array_interface__, **changes}


class Tensor:
    """What has DLPack and nothing else; of the old protocol if there is no `versioned`."""

    def __init__(self, array, versioned):
        self.array, self.versioned = array, versioned

    def __dlpack__(self, **options):
        if options and not self.versioned:
            raise TypeError("unexpected keyword argument")
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("wrap", [Interface, lambda a: Tensor(a, True), lambda a: Tensor(a, False)])
def test_array_interface_and_dlpack(wrap):
    x, y = arguments(100)
    ptxvm.launch(SAXPY, 100, 2.0, wrap(x), wrap(y), block=128)
    assert numpy.array_equal(y, 2 * x + numpy.float32(0.5))
    for part in [y[::2], numpy.ones((4, 4), "f4")[:, 1:]]:
        with pytest.raises(ptxvm.ArgumentError, match="one behind the other"):
            ptxvm.launch(SAXPY, 0, 2.0, wrap(x), wrap(part), block=128)
    square = numpy.asfortranarray(numpy.ones((8, 8), "f4"))
    ptxvm.launch(SAXPY, 64, 1.0, wrap(square), wrap(square), block=64)
    assert (square == 2).all()


def test_memory_of_other_devices_is_refused():
    class OnGpu:
        def __dlpack__(self, **options):
            raise AssertionError("nobody asks")

        def __dlpack_device__(self):
            return (2, 0)

    with pytest.raises(ptxvm.ArgumentError, match="not the CPU's"):
        ptxvm.launch(SAXPY, 1, 1.0, OnGpu(), OnGpu())


def test_arrays_that_are_given_up_are_given_back():
    import sys

    x, y = arguments(10)
    module = ptxvm.Module(SAXPY)
    tensor = Tensor(y, True)
    before = sys.getrefcount(x), sys.getrefcount(y)
    for _ in range(100):
        module["saxpy"][1, 32](10, 1.0, x, tensor)
        with pytest.raises(ptxvm.Error):
            module["saxpy"][1, 2000](10, 1.0, x, tensor)
    assert (sys.getrefcount(x), sys.getrefcount(y)) == before
    data = bytearray(64)
    ptxvm.launch(SAXPY, 1, 1.0, data, data)
    data.extend(b"not exported any more")


def test_readonly_arrays_are_read_and_never_written():
    module = ptxvm.Module(SAXPY)
    x, y = arguments()
    x.flags.writeable = False
    module["saxpy"][4, 256](1000, 2.0, x, y)
    assert y[10] == 20.5
    before = y.copy()
    y.flags.writeable = False
    with pytest.raises(ptxvm.Error, match="argument 3 \\(`y`\\), which is a read-only array") as caught:
        module["saxpy"][4, 256](1000, 2.0, x, y)
    assert caught.value.code == "read-only" and numpy.array_equal(before, y)


def test_many_arrays_at_once():
    size = 64
    text = HEAD + f""".visible .entry sum(.param .align 8 .b8 s[{8 * size}], .param .u64 out) {{
        .reg .b32 %v, %w;  .reg .b64 %p, %q;
        ld.param.u64 %q, [out];
        mov.u32 %w, 0;
        {"".join(f"ld.param.u64 %p, [s+{8 * i}]; ld.global.u32 %v, [%p]; add.u32 %w, %w, %v;" for i in range(size))}
        st.global.u32 [%q], %w;
        ret; }}"""
    arrays = tuple(numpy.array([i], numpy.uint32) for i in range(size))
    out = numpy.zeros(1, numpy.uint32)
    module = ptxvm.Module(text)
    for _ in range(40):
        module["sum"][1, 1](arrays, out)
        assert out[0] == sum(range(size))


def test_empty_arrays():
    empty = numpy.zeros(0, numpy.float32)
    ptxvm.launch(SAXPY, 0, 1.0, empty, empty, block=32)


def objects():
    return numpy.array([object() for _ in range(32)], dtype=object)


#: What kernels cannot use, and what the error says: a word of why, and of what to do.
UNUSABLE = {
    "objects": (objects, "objects of Python", "dtype="),
    "objects in structures": (lambda: numpy.zeros(32, [("a", "f4"), (">b", "O")]), "objects of Python", "dtype="),
    "pointers of ctypes": (lambda: (ctypes.py_object * 32)(*map(str, range(32))), "objects of Python", "dtype="),
    "foreign floats": (lambda: numpy.ones(32, ">f4"), "highest byte", "newbyteorder"),
    "foreign complex numbers": (lambda: numpy.ones(32, ">c16"), "highest byte", "newbyteorder"),
    "foreign texts": (lambda: numpy.zeros(32, ">U4"), "highest byte", "newbyteorder"),
    "foreign fields": (lambda: numpy.zeros(32, [("a", "u1"), ("b", ">i2")]), "highest byte", "newbyteorder"),
    "foreign small floats": (lambda: numpy.zeros(32, numpy.dtype(ml_dtypes.bfloat16).newbyteorder(">")), "highest byte", "newbyteorder"),
    "foreign dates": (lambda: numpy.zeros(32, ">M8[s]"), "highest byte", "newbyteorder"),
    "foreign fields of ctypes": (lambda: (ctypes.c_float.__ctype_be__ * 32)(), "highest byte", "newbyteorder"),
}


@pytest.mark.parametrize("make, why, advice", UNUSABLE.values(), ids=UNUSABLE.keys())
def test_arrays_that_kernels_cannot_use_are_refused(make, why, advice):
    module, bad, x = ptxvm.Module(SAXPY + INTO), make(), numpy.ones(32, numpy.float32)
    before = list(bad) if not hasattr(bad, "tobytes") else bad.tobytes()
    for arguments in [(32, 2.0, bad, x), (32, 2.0, x, bad)]:
        with pytest.raises(TypeError) as raised:
            module["saxpy"][1, 32](*arguments)
        assert why in str(raised.value) and advice in str(raised.value) and "argument" in str(raised.value)
    # In a structure, and as one.
    for structure in [(bad, 1), bad]:
        with pytest.raises(TypeError, match=why):
            module["into"][1, 32](structure)
    with pytest.raises(TypeError, match=why):
        module.write_variable("word", bad)
    with pytest.raises(TypeError):
        ptxvm.evaluate("add.u64", bad, bad)
    with pytest.raises((TypeError, ValueError)):
        ptxvm.Texture(bad)
    assert before == (list(bad) if not hasattr(bad, "tobytes") else bad.tobytes())


#: Takes a structure of 16 bytes, and has a variable.
INTO = ".visible .entry into(.param .align 8 .b8 s[16]) { ret; }\n.global .u32 word;\n"


class Foreign:
    """Has the array interface and nothing else."""

    def __init__(self, array, **changes):
        self.__array_interface__ = {**array.__array_interface__, **changes}
        self.array = array


def test_the_array_interface_tells_what_elements_are():
    saxpy, x = ptxvm.Module(SAXPY)["saxpy"][1, 32], numpy.ones(32, numpy.float32)
    saxpy(32, 2.0, x, Foreign(x))
    assert (x == 3).all()
    structured = numpy.zeros(32, [("a", "u1"), ("b", [("c", ">i2")])])
    for bad, why in [(numpy.ones(32, ">f4"), "highest byte"), (objects(), "objects"), (structured, "highest byte")]:
        with pytest.raises(TypeError, match=why):
            saxpy(32, 2.0, x, Foreign(bad))


def test_what_has_the_order_of_this_machine_is_taken():
    saxpy, x = ptxvm.Module(SAXPY)["saxpy"][1, 32], numpy.ones(32, numpy.float32)
    fields = numpy.zeros(32, [("O>f", "<f4")])
    for y in [numpy.zeros(32, "<f4"), numpy.zeros(128, ">u1"), numpy.zeros(32, ">S4"), fields, array.array("f", [0] * 32), (ctypes.c_float * 32)()]:
        saxpy(32, 2.0, x, y)
        assert bytes(memoryview(y).cast("B")) == numpy.full(32, 2, numpy.float32).tobytes()
    dates = numpy.zeros(16, "<M8[s]")
    saxpy(32, 2.0, x, dates)
    assert dates.tobytes() == numpy.full(32, 2, numpy.float32).tobytes()
