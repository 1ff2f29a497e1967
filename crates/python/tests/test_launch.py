"""Launches with every kind of argument."""

import array
import ctypes
import io
import os
import pickle
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy
import pytest
from conftest import ENDLESS, HEAD, HISTOGRAM, SAXPY, STRUCTURE, printer

import ptxvm


def arguments(size=1000):
    x = numpy.arange(size, dtype=numpy.float32)
    y = numpy.full(size, 0.5, numpy.float32)
    return x, y


def test_arrays_are_used_in_place():
    module = ptxvm.Module(SAXPY)
    x, y = arguments()
    report = module["saxpy"][4, 256](1000, 2.0, x, y)
    assert numpy.array_equal(y, 2 * x + numpy.float32(0.5))
    assert report.thread_instructions > 10_000 and report.seconds > 0


def test_a_file_and_a_function_call(root):
    x, y = arguments()
    ptxvm.launch(root / "examples/saxpy/saxpy.ptx", 1000, 2.7, x, y, grid=4, block=256)
    assert numpy.allclose(y, 2.7 * x + 0.5)
    ptxvm.launch(str(root / "examples/saxpy/saxpy.ptx"), 0, 2.7, x, y, grid=4, block=256, kernel="saxpy")


def test_a_text_is_compiled_once_and_a_file_again_when_it_changes(tmp_path):
    assert ptxvm._module(SAXPY, False) is ptxvm._module(SAXPY, False)
    assert ptxvm._module(SAXPY, True) is not ptxvm._module(SAXPY, False)
    path = tmp_path / "k.ptx"
    path.write_text(SAXPY)
    first = ptxvm._module(path, False)
    assert ptxvm._module(path, False) is first
    path.write_text(SAXPY.replace("saxpy", "other"))
    assert ptxvm._module(path, False).kernels == ["other"]


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


def test_modules_of_32_bit_addresses():
    text = SAXPY.replace(".address_size 64", ".address_size 32").replace("sm_90", "sm_30").replace(".version 8.5", ".version 4.0")
    text = text.replace(".param .u64", ".param .u32").replace("ld.param.u64", "ld.param.u32")
    text = text.replace(".reg .b64 %p, %q, %o", ".reg .b32 %p, %q, %o").replace("mul.wide.u32", "mul.lo.u32").replace("add.u64", "add.u32")
    x, y = arguments(100)
    ptxvm.launch(text, 100, 2.0, x, y, block=128)
    assert numpy.array_equal(y, 2 * x + numpy.float32(0.5))


@pytest.mark.parametrize("ty, value, bits", [
    ("u32", 7, 7), ("u32", -1, 2**32 - 1), ("s32", 2**32 - 1, 2**32 - 1), ("s64", -2, 2**64 - 2), ("u8", 255, 255),
    ("u32", True, 1), ("f32", 1, 0x3F800000), ("f32", 1.5, 0x3FC00000), ("f64", 0.5, 0x3FE0000000000000),
    ("b32", 1.5, 0x3FC00000), ("b32", 3, 3), ("b64", 0.5, 0x3FE0000000000000), ("b16", numpy.float16(1), 0x3C00), ("f16", 1.0, 0x3C00),
    ("f32", numpy.float64(1.5), 0x3FC00000), ("f32", numpy.float16(1.5), 0x3FC00000), ("u32", numpy.int64(9), 9),
    ("b16", ml_dtypes.bfloat16(1), 0x3F80), ("b32", numpy.float32(1.5), 0x3FC00000), ("f32", ml_dtypes.bfloat16(1.5), 0x3FC00000),
    ("u64", numpy.uint64(2**63), 2**63), ("u64", None, 0), ("f32", numpy.int32(2), 0x40000000), ("b8", numpy.int8(-1), 255),
])  # fmt: skip
def test_scalars_take_the_type_of_the_parameter(ty, value, bits):
    size = int(ty[1:])
    register = max(size, 16)
    text = HEAD + f""".visible .entry give(.param .{ty} value, .param .u64 out) {{
        .reg .b64 %q;  .reg .b{register} %v;
        ld.param.u64 %q, [out];
        ld.param.b{size} %v, [value];
        st.global.b{size} [%q], %v;
        ret; }}"""
    out = numpy.zeros(1, numpy.uint64)
    ptxvm.launch(text, value, out)
    assert out[0] == bits


@pytest.mark.parametrize("value, message", [
    (2**32, "argument 0 \\(`n`\\) is 4294967296, which has more than 32 bits, but the parameter is .u32"),
    (-(2**31) - 1, "more than 32 bits"), (10**60, "more than 32 bits"),
    (1.5, "is the float 1.5"), (numpy.float32(1), "is the float"), ("7", "is a str"), (None, "is a NoneType"), (numpy.zeros(3), "is an array"),
])  # fmt: skip
def test_scalars_that_do_not_fit(value, message):
    x, y = arguments(4)
    with pytest.raises(ptxvm.ArgumentError, match=message) as caught:
        ptxvm.launch(SAXPY, value, 1.0, x, y)
    assert caught.value.code == "arguments" and "0: .u32 n" in str(caught.value)
    assert isinstance(caught.value, TypeError)


def test_wrong_numbers_of_arguments():
    with pytest.raises(ptxvm.ArgumentError, match="takes 4 arguments, but 1 were given"):
        ptxvm.launch(SAXPY, 1)


def test_structures():
    out, data = numpy.zeros(4, numpy.uint32), numpy.array([77], numpy.uint32)
    ptxvm.launch(STRUCTURE, (1.5, 2.5, 7, data, 9), out)
    assert out.tolist() == [0x3FC00000, 0x40200000, 7, 77]
    # The same with a structure within.
    ptxvm.launch(STRUCTURE, ((numpy.float32(1), 2.5), -1, (data, 9)), out)
    assert out.tolist() == [0x3F800000, 0x40200000, 2**32 - 1, 77]
    for wrong, message in [
        ((1.5,), "has 4 bytes, but the parameter is .b8\\[32\\]"),
        ((1.5, 2**40), "numpy.int64"),
        ((1.5, "x"), "a field of type str"),
        (b"123", "has 3 bytes"),
        (7, "a structure is a tuple"),
    ]:
        with pytest.raises(ptxvm.ArgumentError, match=message):
            ptxvm.launch(STRUCTURE, wrong, out)
    nested = ()
    for _ in range(100):
        nested = (nested,)
    with pytest.raises(ptxvm.ArgumentError, match="too many structures"):
        ptxvm.launch(STRUCTURE, nested, out)

    class C(ctypes.Structure):
        _fields_ = [("a", ctypes.c_float), ("b", ctypes.c_float), ("n", ctypes.c_int), ("p", ctypes.c_void_p), ("m", ctypes.c_int)]

    with pytest.raises(ptxvm.Error) as caught:
        ptxvm.launch(STRUCTURE, C(1.5, 2.5, 7, 16, 9), out)
    assert caught.value.code == "out-of-bounds" and caught.value.address == 16


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


def test_launches_from_several_threads():
    module = ptxvm.Module(SAXPY)

    def work(seed):
        x = numpy.random.default_rng(seed).random(5000, numpy.float32)
        y = x.copy()
        for _ in range(20):
            module["saxpy"][20, 256](5000, 1.0, x, y)
        return numpy.allclose(y, 21 * x)

    with ThreadPoolExecutor(8) as executor:
        assert all(executor.map(work, range(8)))


def test_other_threads_run_meanwhile():
    ticks = 0
    stop = threading.Event()

    def tick():
        nonlocal ticks
        while not stop.is_set():
            ticks += 1
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    before = ticks
    with pytest.raises(ptxvm.Error) as caught:
        ptxvm.launch(ENDLESS, max_steps=100_000_000)
    stop.set()
    thread.join()
    assert caught.value.code == "step-limit" and ticks > before


def test_what_kernels_print(capsys):
    ptxvm.launch(printer(), grid=2, deterministic=True)
    assert capsys.readouterr().out == "block 0\nblock 1\n"
    output = io.StringIO()
    ptxvm.launch(printer(), grid=2, deterministic=True, output=output)
    assert output.getvalue() == "block 0\nblock 1\n" and capsys.readouterr().out == ""


def test_progress():
    import tqdm

    x, y = arguments(200_000)
    with tqdm.tqdm(file=io.StringIO()) as bar:
        ptxvm.launch(SAXPY, 200_000, 1.0, x, y, grid=1000, block=256, progress=bar)
        assert bar.total == 1000 and bar.n == 1000
    ptxvm.launch(SAXPY, 200_000, 1.0, x, y, grid=1000, block=256, progress=True)

    class Broken:
        total = 1

        def update(self, count):
            raise ValueError("no room")

    with pytest.raises(ValueError, match="no room"):
        ptxvm.launch(SAXPY, 200_000, 1.0, x, y, grid=1000, block=256, progress=Broken())


def test_options():
    x, y = arguments()
    for options in [{"engine": "reference"}, {"schedule": 3}, {"deterministic": True}, {"threads": 1}, {"max_steps": 10**9}]:
        y[:] = 0.5
        ptxvm.launch(SAXPY, 1000, 2.0, x, y, grid=4, block=256, **options)
        assert numpy.array_equal(y, 2 * x + numpy.float32(0.5))
    with pytest.raises(TypeError, match="`thread` is no option of a launch"):
        ptxvm.launch(SAXPY, 1000, 2.0, x, y, thread=1)
    with pytest.raises(ValueError, match="no engine"):
        ptxvm.launch(SAXPY, 1000, 2.0, x, y, engine="fast")
    with pytest.raises(TypeError, match="an extent is the float 3.90625"):
        ptxvm.launch(SAXPY, 1000, 2.0, x, y, grid=1000 / 256, block=256)


def test_a_float_of_16_bits_needs_a_format():
    text = HEAD + ".visible .entry give(.param .b16 value) { ret; }"
    with pytest.raises(ptxvm.ArgumentError, match="1.5, which may be f16 or bf16"):
        ptxvm.launch(text, 1.5)


@pytest.mark.parametrize("engine", ["interpreter", "reference"])
def test_parts_of_a_grid(engine):
    x, y = arguments()
    module = ptxvm.Module(SAXPY)
    for blocks in [(2, 4), (0, 1), (1, 2)]:
        module["saxpy"][4, 256](1000, 2.0, x, y, blocks=blocks, engine=engine)
        start, end = blocks[0] * 256, min(blocks[1] * 256, 1000)
        assert numpy.array_equal(y[start:end], 2 * x[start:end] + numpy.float32(0.5))
    assert numpy.array_equal(y, 2 * x + numpy.float32(0.5))
    for wrong in [(0, 5), (2, 2), (3, 1)]:
        with pytest.raises(ptxvm.Error, match="no part of a grid of 4"):
            module["saxpy"][4, 256](1000, 2.0, x, y, blocks=wrong)


def test_kernels_are_found_by_name():
    text = SAXPY.replace("saxpy", "_Z5saxpyjfPfS_") + SAXPY[len(HEAD) :].replace("saxpy", "other")
    module = ptxvm.Module(text)
    assert module.kernels == ["_Z5saxpyjfPfS_", "other"] == list(module) and len(module) == 2
    assert module["saxpy"].name == "_Z5saxpyjfPfS_" and "other" in module and "saxpy" not in module
    assert module["other"].parameters == [("n", ".u32"), ("a", ".f32"), ("x", ".u64"), ("y", ".u64")]
    for name in ["nothing", ""]:
        with pytest.raises(KeyError) as caught:
            module[name]
    assert isinstance(caught.value, ptxvm.Error) and "`other`" in str(caught.value)
    with pytest.raises(ptxvm.KernelNotFoundError, match="kernel=NAME"):
        ptxvm.launch(text)
    with pytest.raises(TypeError, match="kernel\\[grid, block\\]"):
        module["other"]()
    with pytest.raises(ValueError, match="kernel\\[grid, block"):
        module["other"][1]
    assert module["other"].attributes["param_bytes"] == 24


def test_required_blocks_need_not_be_written():
    text = SAXPY.replace("u64 y)", "u64 y) .reqntid 64")
    x, y = arguments(64)
    ptxvm.launch(text, 64, 2.0, x, y)
    assert ptxvm.Module(text)["saxpy"][1, None].block == (64, 1, 1)
    assert y[63] == 126.5


def test_linking_and_variables():
    library = HEAD + ".visible .func (.reg .u32 r) twice(.reg .u32 v) { add.u32 r, v, v; ret; }"
    kernel = HEAD + """.extern .func (.reg .u32 r) twice(.reg .u32 v);
        .visible .global .u32 factor = 5;
        .visible .entry run(.param .u64 out) { .reg .u32 %v; .reg .u64 %p;
            ld.param.u64 %p, [out]; ld.global.u32 %v, [factor]; call (%v), twice, (%v); st.global.u32 [%p], %v; ret; }"""
    module = ptxvm.Module(kernel, library)
    out = numpy.zeros(1, numpy.uint32)
    module["run"][1, 1](out)
    assert out[0] == 10 and module.read_variable("factor") == bytes([5, 0, 0, 0])
    module.write_variable("factor", numpy.array([21], numpy.uint32))
    module["run"][1, 1](out)
    assert out[0] == 42
    with pytest.raises(ptxvm.Error, match="no variable named `nothing`"):
        module.read_variable("nothing")
    with pytest.raises(ptxvm.Error):
        module.write_variable("factor", bytes(5))


def test_pickles():
    module = pickle.loads(pickle.dumps(ptxvm.Module(SAXPY)))
    launcher = pickle.loads(pickle.dumps(module["saxpy"][4, 256, 64]))
    assert launcher.grid == (4, 1, 1) and launcher.shared_bytes == 64
    x, y = arguments()
    launcher(1000, 2.0, x, y)
    assert y[10] == 20.5


def test_histogram_with_atomics():
    data = numpy.random.default_rng(1).integers(0, 256, 4096, numpy.uint8)
    counts = numpy.zeros(16, numpy.uint32)
    ptxvm.launch(HISTOGRAM, data, counts, grid=16, block=256)
    assert numpy.array_equal(counts, numpy.bincount(data & 15, minlength=16))


def test_forked_processes_can_launch():
    # Without threads of the pool: a fork has none of them.
    pid = os.fork()
    if pid == 0:
        try:
            x, y = arguments(100)
            ptxvm.launch(SAXPY, 100, 2.0, x, y, block=128, threads=1)
            os._exit(0 if y[1] == 2.5 else 1)
        except BaseException:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


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


@pytest.mark.skipif(ptxvm._native.OPTIMIZED, reason="a panic can be planted in builds with checks")
@pytest.mark.parametrize("options", [{}, {"threads": 1}, {"stop": threading.Event()}])
def test_a_panic_below_a_launch_is_an_exception_like_any_other(options, capfd):
    x, y = arguments()
    saxpy = ptxvm.Module(SAXPY)["saxpy"][4, 256]
    # Planted in an observer.
    with pytest.raises(ptxvm.Error, match="panicked.*planted in an observer.*observe.rs") as raised:
        saxpy(1000, 2.0, x, y, _planted="access", **options)
    assert raised.value.code == "defect" and isinstance(raised.value, Exception)
    # And on the way to it.
    with pytest.raises(ptxvm.Error, match="planted before the launch.*launch.rs") as raised:
        saxpy(1000, 2.0, x, y, _planted="before", **options)
    assert raised.value.code == "defect"
    # Where a backtrace is asked for Rust says more.
    assert "panicked at" not in capfd.readouterr().err or "RUST_BACKTRACE" in os.environ
    y[:] = 0.5
    saxpy(1000, 2.0, x, y)
    assert numpy.array_equal(y, 2 * x + numpy.float32(0.5))


#: Launches, forks, and launches in the child and in a child of that: on all threads, and with all that has threads.
FORKS = (
    """import os, signal, numpy, ptxvm
SAXPY = %r
x, y = numpy.arange(100_000, dtype="f4"), numpy.zeros(100_000, "f4")
def launch(**options):
    y[:] = 0
    ptxvm.launch(SAXPY, x.size, 2.0, x, y, grid=391, block=256, threads=3, **options)
    ptxvm.launch(SAXPY, x.size, 2.0, x, y, grid=391, block=256, **options)
    assert numpy.array_equal(y, 4 * x)
    assert numpy.array_equal(ptxvm.evaluate("add.f32", x, x), x + x)
def fork(depth):
    launch()
    launch(progress=Bar())
    if depth:
        child = os.fork()
        if not child:
            signal.alarm(60)
            try:
                fork(depth - 1)
            except BaseException as error:
                print(error)
                os._exit(1)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        launch()
class Bar:
    total = None
    def update(self, count): pass
fork(2)
print("done")
"""
    % SAXPY
)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_launches_with_threads_of_its_own():
    program = [sys.executable, "-W", "ignore", "-c", FORKS]
    done = subprocess.run(program, capture_output=True, text=True, timeout=120, env={**os.environ, "RAYON_NUM_THREADS": "3"})
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit is Linux's")
def test_a_launch_needs_no_more_threads_than_there_are():
    program = """import os, resource, sys
if os.getuid() == 0:
    # The limit is that of a user, and root has none.
    os.setgid(65534); os.setuid(65534)
resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
import numpy, threading
x, y = numpy.arange(100_000, dtype="f4"), numpy.zeros(100_000, "f4")
launcher = ptxvm.Module(SAXPY)["saxpy"][391, 256]
for threads in (None, 3):
    y[:] = 0
    launcher(x.size, 2.0, x, y, threads=threads)
    assert numpy.array_equal(y, 2 * x)
assert numpy.array_equal(ptxvm.evaluate("add.f32", x, x), x + x)
try:
    launcher(x.size, 2.0, x, y, stop=threading.Event())
except ptxvm.Error as error:
    print(error.code)
"""
    # What is imported may lie where only root reads.
    program = f"import numpy, ptxvm, ptxvm._evaluate\nSAXPY = {SAXPY!r}\n" + program
    limited = {**os.environ, "RAYON_NUM_THREADS": "3", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, env=limited)
    assert (done.returncode, done.stdout, done.stderr) == (0, "no-thread\n", "")
