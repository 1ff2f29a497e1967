"""Launches and sweeps in parts, on a process pool and on two workers of dask."""

import subprocess
import sys
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from multiprocessing import get_context

import numpy
import pytest
from conftest import HEAD, HISTOGRAM, SAXPY

import ptxvm
from ptxvm import jobs


class Here(Executor):
    """Runs jobs at once, through pickle as other processes would."""

    def submit(self, function, *arguments):
        import pickle

        function, arguments = pickle.loads(pickle.dumps((function, arguments)))
        future = Future()
        future.set_result(pickle.loads(pickle.dumps(function(*arguments))))
        return future


@pytest.fixture(scope="module", params=["here", "processes", "dask"])
def executor(request):
    if request.param == "here":
        yield Here()
    elif request.param == "processes":
        with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
            yield pool
    else:
        distributed = pytest.importorskip("distributed")
        with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
            with distributed.Client(cluster) as client:
                yield client.get_executor(pure=False)


def test_parts_are_like_one_launch(executor):
    saxpy = ptxvm.Module(SAXPY)["saxpy"]
    x = numpy.random.default_rng(0).random(10_000, numpy.float32)
    one, parts = numpy.ones_like(x), numpy.ones_like(x)
    report = saxpy[40, 256](10_000, 2.5, x, one)
    instructions, _ = jobs.run(saxpy[40, 256], 10_000, 2.5, x, parts, executor=executor, parts=7)
    assert numpy.array_equal(one, parts) and instructions == report.thread_instructions


def test_atomics_are_merged_by_a_named_reduction(executor):
    histogram = ptxvm.Module(HISTOGRAM)["histogram"][16, 256]
    data = numpy.random.default_rng(1).integers(0, 256, 4096, numpy.uint8)
    counts = numpy.full(16, 5, numpy.uint32)
    jobs.run(histogram, data, counts, executor=executor, parts=5, merge={1: "add"})
    assert numpy.array_equal(counts, 5 + numpy.bincount(data & 15, minlength=16))


def expected_less(a, b):
    return a < b


def test_sweeps(executor):
    start, end = 0x3C00_0000, 0x3C10_0000
    parts = jobs.sweep("setp.lt.f16", 2, expected_less, executor=executor, parts=4, start=start, end=end)
    whole = jobs.sweep("setp.lt.f16", 2, expected_less, start=start, end=end)
    assert parts == whole and (whole.count, whole.different, whole.first) == (1 << 20, 0, None)
    plain = jobs.sweep("setp.lt.f16", 2, start=start, end=end)
    assert plain.sums == whole.sums and 0 < sum(plain.sums) < 1 << 20


class Bar:
    """What there is of tqdm's protocol."""

    total, n = None, 0

    def update(self, count):
        self.n += count


def test_progress(executor):
    saxpy, bar = ptxvm.Module(SAXPY)["saxpy"], Bar()
    x = numpy.ones(10_000, "f4")
    jobs.run(saxpy[40, 256], 10_000, 2.5, x, numpy.ones_like(x), executor=executor, parts=7, progress=bar)
    assert (bar.total, bar.n) == (40, 40)
    bar = Bar()
    jobs.sweep("setp.lt.f16", 2, executor=executor, parts=3, start=5, end=1000, progress=bar)
    assert (bar.total, bar.n) == (995, 995)
    jobs.sweep("setp.lt.f16", 2, end=1000, progress=True)


def test_jobs_of_a_sweep_are_its_parts(executor):
    parts = jobs.split_sweep("setp.lt.f16", 2, expected_less, parts=3, start=0x3C00_0000, end=0x3C00_4000)
    results = list(executor.map(jobs.SweepJob.__call__, parts))
    whole = jobs.sweep("setp.lt.f16", 2, expected_less, start=0x3C00_0000, end=0x3C00_4000)
    assert sum(results, jobs.SweepResult()) == whole and whole.count == 0x4000


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_sweep_from_the_command_line(workers):
    run = [sys.executable, "-m", "ptxvm.jobs", "setp.lt.f16", "--start", str(0x3C00_0000), "--end", str(0x3C02_0000), "--workers", workers]
    done = subprocess.run([*run, "--expected", "operator.lt"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("setp.lt.f16: SweepResult(count=131072, different=0, first=None, sums=(")
    done = subprocess.run([*run, "--expected", "operator.le"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and "different=2, first=(15360, 15360)" in done.stdout


def wrong_less(a, b):
    return a <= b


def test_a_sweep_finds_what_differs():
    found = jobs.sweep("setp.lt.f16", 2, wrong_less, start=0x3C00_0000, end=0x3C01_0000)
    assert found.different == 1 and found.first == (0x3C00, 0x3C00)
    three = jobs.sweep("add.sat.f16", 2, lambda a, b: numpy.clip(a, 0, 1), start=0x3C00_0000, end=0x3C00_0100)
    assert three.different == 0
    with pytest.raises(ValueError, match="64 bits of operands"):
        jobs.sweep("add.f32", 2)


def kernel(body, parameters=".param .u64 a, .param .u64 b"):
    registers = ".reg .b32 %v<4>;  .reg .b64 %p, %q;  .reg .f32 %f;"
    text = f"{HEAD}.visible .entry k({parameters}) {{ {registers} ld.param.u64 %p, [a]; ld.param.u64 %q, [b]; {body} ret; }}"
    return ptxvm.Module(text)["k"]


@pytest.mark.parametrize("body, message", [
    ("atom.global.add.u32 %v0, [%p], 1; st.global.u32 [%q], %v0;", "`atom.global.add.u32 %v0, \\[%p\\], 1;?` reads what other blocks"),
    ("atom.global.cas.b32 %v0, [%p], 0, 1; st.global.u32 [%q], %v0;", "reads what other blocks"),
    ("ld.relaxed.gpu.global.u32 %v0, [%p]; st.global.u32 [%q], %v0;", "ld.relaxed.gpu.global.u32"),
    ("ld.volatile.global.u32 %v0, [%p]; st.global.u32 [%q], %v0;", "ld.volatile"),
    ("red.global.add.u32 [%p], 1;", "say how the array is brought together"),
    ("atom.add.u32 %v0, [%p], 1;", "say how the array is brought together"),
])  # fmt: skip
def test_blocks_that_learn_of_each_other_do_not_run_apart(body, message):
    a, b = numpy.zeros(4, "u4"), numpy.zeros(4, "u4")
    with pytest.raises(ptxvm.Error, match=message) as caught:
        jobs.split(kernel(body)[4, 32], a, b, parts=2)
    assert caught.value.code == "order-between-blocks"


def test_atomics_of_shared_memory_are_the_blocks_own():
    body = ".shared .u32 s; atom.shared.add.u32 %v0, [s], 1; mov.u32 %v1, %ctaid.x; mad.wide.u32 %p, %v1, 4, %p; st.global.u32 [%p], %v1;"
    a, b = numpy.zeros(8, "u4"), numpy.zeros(8, "u4")
    jobs.run(kernel(body)[8, 1], a, b, executor=Here(), parts=3)
    assert a.tolist() == list(range(8))


def test_two_parts_that_write_the_same_place_differently_are_refused():
    a, b = numpy.full(4, 99, "u4"), numpy.zeros(4, "u4")
    with pytest.raises(ptxvm.Error, match="both wrote byte 0 of array 0"):
        jobs.run(kernel("mov.u32 %v0, %ctaid.x; st.global.u32 [%p], %v0;")[4, 1], a, b, executor=Here(), parts=2)
    assert (a == 99).all()
    # The same value from all is what one launch leaves.
    jobs.run(kernel("st.global.u32 [%p], 7;")[4, 1], a, b, executor=Here(), parts=2)
    assert a.tolist() == [7, 99, 99, 99]


def test_an_atomic_on_an_array_that_is_not_merged_is_found():
    a, b = numpy.zeros(4, "u4"), numpy.zeros(4, "u4")
    with pytest.raises(ptxvm.Error, match="both wrote byte 0 of array 1"):
        jobs.run(kernel("red.global.add.u32 [%q], 1;")[4, 1], a, b, executor=Here(), parts=2, merge={0: "add"})


@pytest.mark.parametrize("operation, reduction, expected", [
    ("min.s32", "min", -3), ("max.s32", "max", 4), ("or.b32", "or", 0xFFFFFFFF), ("xor.b32", "xor", None), ("add.s32", "add", 10 + sum(range(-3, 5))),
])  # fmt: skip
def test_reductions(operation, reduction, expected):
    body = f"mov.u32 %v0, %ctaid.x; sub.s32 %v0, %v0, 3; red.global.{operation} [%p], %v0;"
    one, parts, b = numpy.full(1, 10, "i4"), numpy.full(1, 10, "i4"), numpy.zeros(1, "u4")
    if reduction == "max":
        one[:] = parts[:] = -10
    kernel(body)[8, 1](one, b)
    jobs.run(kernel(body)[8, 1], parts, b, executor=Here(), parts=3, merge={0: reduction})
    assert one.tolist() == parts.tolist()
    if expected is not None:
        assert numpy.uint32(one[0]) == numpy.uint32(expected % 2**32)


def test_what_cannot_be_split_says_why():
    saxpy = ptxvm.Module(SAXPY)["saxpy"]
    x = numpy.ones(64, "f4")
    with pytest.raises(ptxvm.Error, match="share memory"):
        jobs.split(saxpy[2, 32], 64, 1.0, x, x, parts=2)
    with pytest.raises(ptxvm.Error, match="cooperative"):
        jobs.split(saxpy[2, 32], 64, 1.0, x, x.copy(), parts=2, cooperative=True)
    with pytest.raises(TypeError, match="not bytearray"):
        jobs.split(saxpy[2, 32], 64, 1.0, x, bytearray(256), parts=2)
    with pytest.raises(TypeError, match="one behind the other"):
        jobs.split(saxpy[2, 32], 64, 1.0, x, numpy.ones(128, "f4")[::2], parts=2)
    with pytest.raises(ValueError, match="no reduction"):
        jobs.split(saxpy[2, 32], 64, 1.0, x, x.copy(), parts=2, merge={3: "mean"})
    with pytest.raises(ValueError, match="is no array"):
        jobs.split(saxpy[2, 32], 64, 1.0, x, x.copy(), parts=2, merge={1: "add"})
    with pytest.raises(ValueError, match="floating point"):
        jobs.split(saxpy[2, 32], 64, 1.0, x, x.copy(), parts=2, merge={3: "add"})
    assert len(jobs.split(saxpy[2, 32], 64, 1.0, x, x.copy(), parts=100)) == 2


def test_two_dimensional_arrays_in_both_orders():
    text = HEAD + """.visible .entry twice(.param .u64 a) { .reg .b32 %i, %v; .reg .b64 %p;
        mov.u32 %i, %ctaid.x; ld.param.u64 %p, [a]; mad.wide.u32 %p, %i, 4, %p; ld.global.u32 %v, [%p];
        add.u32 %v, %v, %v; st.global.u32 [%p], %v; ret; }"""
    for order in "CF":
        a = numpy.asarray(numpy.arange(12, dtype="u4").reshape(3, 4), order=order)
        before = a.copy()
        jobs.run(ptxvm.Module(text)["twice"][12, 1], a, executor=Here(), parts=5)
        assert numpy.array_equal(a, 2 * before)


#: Launches, and then does the same in parts by children that are forked.
FORKED = (
    """import numpy, ptxvm
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
saxpy = ptxvm.Module(%r)["saxpy"][391, 256]
x, y, parts = (numpy.ones(100_000, "f4") for _ in range(3))
saxpy(x.size, 2.5, x, y)
with ProcessPoolExecutor(2, mp_context=get_context("fork")) as executor:
    ptxvm.jobs.run(saxpy, x.size, 2.5, x, parts, executor=executor, parts=4)
    ptxvm.jobs.sweep("neg.f16", 1, executor=executor)
assert numpy.array_equal(y, parts)
print("done")
"""
    % SAXPY
)


def test_children_that_are_forked_do_jobs():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_arrays_that_kernels_cannot_use_are_refused(executor):
    saxpy, x = ptxvm.Module(SAXPY)["saxpy"][1, 32], numpy.ones(32, numpy.float32)
    for bad, why in [(numpy.ones(32, ">f4"), "highest byte"), (numpy.array([None] * 32), "objects of Python")]:
        with pytest.raises(TypeError, match=why):
            jobs.run(saxpy, 32, 2.0, x, bad, executor=executor, parts=1)
