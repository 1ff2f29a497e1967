"""Launches: scalars and structures as arguments, options, threads, processes."""

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
from conftest import ENDLESS, HEAD, HISTOGRAM, SAXPY, STRUCTURE, arguments, printer

import ptxvm


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
