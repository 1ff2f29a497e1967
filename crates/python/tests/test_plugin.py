"""The pytest plugin, as a user runs it."""

from conftest import HEAD, SAXPY

#: Reads its neighbour's value from shared memory, without waiting for it.
RACE = (
    HEAD
    + """.visible .entry shift(.param .u64 x, .param .u64 y) {
    .shared .align 4 .b8 tile[1024];
    .reg .b32 %i, %j, %s, %v;  .reg .b64 %p, %q;
    mov.u32 %i, %tid.x;
    ld.param.u64 %p, [x];  ld.param.u64 %q, [y];
    mad.wide.u32 %p, %i, 4, %p;  mad.wide.u32 %q, %i, 4, %q;
    ld.global.u32 %v, [%p];
    mov.u32 %s, tile;
    mad.lo.u32 %j, %i, 4, %s;
    st.shared.u32 [%j], %v;
    BARRIER
    xor.b32 %i, %i, 64;
    mad.lo.u32 %j, %i, 4, %s;
    ld.shared.u32 %v, [%j];
    st.global.u32 [%q], %v;
    ret;
}
"""
)


def run(pytester, kernel, test, *options):
    (pytester.path / "kernel.ptx").write_text(kernel)
    pytester.makepyfile(test)
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", *options)


THREE_LINES = """
def test_saxpy(ptx):
    saxpy = ptx.kernel("kernel.ptx")
    ptx.compare(saxpy, lambda a, x, y: {function}, ptx.size, 2.5, ptx.input, ptx.inout, rtol=1e-6, atol=1e-6)
"""


def test_a_kernel_is_compared_in_three_lines(pytester):
    run(pytester, SAXPY, THREE_LINES.format(function="a * x + y")).assert_outcomes(passed=1)
    run(pytester, SAXPY, THREE_LINES.format(function="a * x + y"), "--ptxvm").assert_outcomes(passed=1)


def test_what_differs_is_shown_as_bits_with_the_line_that_wrote_it(pytester):
    result = run(pytester, SAXPY.replace("fma.rn.f32 %w, %v, %a, %w", "fma.rn.f32 %w, %v, %a, 0f3F800000"), THREE_LINES.format(function="a * x + y"))
    result.assert_outcomes(failed=1)
    line = SAXPY.split("\n").index("    st.global.f32 [%q], %w;") + 1
    result.stdout.re_match_lines([
        r".*kernel saxpy on float32\[1\]: 1 of 1 elements of argument 3 \(`y`\) differ",
        r".*\[0\]  got .* = 0x[0-9a-f]{8}, expected .* = 0x[0-9a-f]{8}",
        rf".*written by .*kernel.ptx:{line}: st.global.f32 \[%q\], %w;  \(block \(0, 0, 0\), thread \(0, 0, 0\)\)",
    ])  # fmt: skip


def test_elements_that_nobody_wrote(pytester):
    result = run(pytester, SAXPY.replace("@%out ret;", "ret;"), THREE_LINES.format(function="y + 1"))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*nobody wrote it"])


SHIFT = """
import numpy
def test_shift(ptx):
    def shift(x):
        return x.reshape(2, 2, -1)[:, ::-1].reshape(-1) if x.size == 256 else x
    ptx.compare(ptx.kernel("kernel.ptx"), shift, ptx.input, ptx.output, shapes=[256], dtypes=["uint32", "int32"])
"""


def test_thorough_comparison_finds_a_missing_barrier(pytester):
    good, bad = RACE.replace("BARRIER", "bar.sync 0;"), RACE.replace("BARRIER", "")
    run(pytester, good, SHIFT, "--ptxvm").assert_outcomes(passed=1)
    result = run(pytester, bad, SHIFT, "--ptxvm")
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines([r".*with (schedule|engine)=.*"])


MORE = """
import numpy, ml_dtypes, pytest

@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint16", "int64", "bool", ml_dtypes.bfloat16, ml_dtypes.float8_e5m2])
def test_values(ptx, dtype):
    values = ptx.values((50,), dtype, seed=3)
    assert values.dtype == dtype and values.tobytes() == ptx.values((50,), dtype, seed=3).tobytes()
    raw = lambda array: {element.tobytes() for element in array}
    assert raw(ptx.edge_values(dtype)) <= raw(values)

def test_faults_are_errors(ptx):
    import ptxvm
    with pytest.raises(ptxvm.Error, match="out of bounds"):
        ptx.compare(ptx.kernel("kernel.ptx"), lambda a, x, y: y, 5000, 1.0, ptx.input, ptx.inout, shapes=[100])

def test_extents_and_numbers_of_results(ptx):
    saxpy = ptx.kernel("kernel.ptx", "saxpy")
    ptx.compare(saxpy, lambda a, x, y: y, ptx.extent(0), 0.0, ptx.input, ptx.inout, shapes=[(8,)], edges=False)
    with pytest.raises(TypeError, match="returns 2 arrays, and 1 are written"):
        ptx.compare(saxpy, lambda a, x, y: (x, y), ptx.size, 1.0, ptx.input, ptx.inout)
    with pytest.raises(ValueError, match=r"shape \\(4, 1\\) for one of \\(4,\\)"):
        ptx.compare(saxpy, lambda a, x, y: y.reshape(-1, 1), ptx.size, 1.0, ptx.input, ptx.inout, shapes=[4])
    with pytest.raises(TypeError, match="complex"):
        ptx.edge_values("complex64")

def test_names_of_types(ptx):
    assert ptx.values(4, "bf16").dtype == ml_dtypes.bfloat16
    with pytest.raises(TypeError, match="NumPy calls 'f16': write float16"):
        ptx.values(4, "f16")
"""


def test_edge_values_roles_and_faults(pytester):
    run(pytester, SAXPY, MORE).assert_outcomes(passed=12)


def test_bit_for_bit_is_the_default(pytester):
    test = THREE_LINES.format(function="a * x + y").replace(", rtol=1e-6, atol=1e-6", "")
    # NumPy rounds twice where the kernel rounds once.
    run(pytester, SAXPY, test).assert_outcomes(failed=1)
    once = "(a * x.astype('f8') + y).astype('f4')"
    run(pytester, SAXPY, THREE_LINES.format(function=once)).assert_outcomes(passed=1)


def test_a_tool_finds_what_the_result_does_not_show(pytester):
    test = """
def test_shift(ptx):
    shift = ptx.kernel("kernel.ptx")
    ptx.compare(shift, lambda x: x.reshape(2, 64)[::-1].reshape(-1), ptx.input, ptx.output, shapes=[128], dtypes="uint32", block=128, tool="racecheck")
"""
    run(pytester, RACE.replace("BARRIER", "bar.sync 0;"), test, "--ptxvm").assert_outcomes(passed=1)
    result = run(pytester, RACE.replace("BARRIER", ""), test)
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines([r".*ptxvm.Error: error\[race-write-read\]: .*"])


def test_types_have_names(pytester):
    test = """
import pytest

@pytest.mark.parametrize("dtypes", ["uint16", "bfloat16", ("bf16", "int16")])
def test_copy(ptx, dtypes):
    copy = ptx.kernel("kernel.ptx")
    ptx.compare(copy, lambda x: x, ptx.input, ptx.output, shapes=[64], dtypes=dtypes, block=64)
"""
    kernel = HEAD + """.visible .entry copy(.param .u64 x, .param .u64 y) {
    .reg .b32 %i;  .reg .b16 %v;  .reg .b64 %p, %q;
    mov.u32 %i, %tid.x;
    ld.param.u64 %p, [x];  ld.param.u64 %q, [y];
    mad.wide.u32 %p, %i, 2, %p;  mad.wide.u32 %q, %i, 2, %q;
    ld.global.b16 %v, [%p];
    st.global.b16 [%q], %v;
    ret;
}
"""
    run(pytester, kernel, test).assert_outcomes(passed=3)
