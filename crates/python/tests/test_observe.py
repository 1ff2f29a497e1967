"""`tool=`, `trace=`, `watch=` and `first_nan=`: what a launch does, and where it goes wrong."""

import math
import pickle

import ml_dtypes
import numpy
import pytest
from conftest import ENDLESS, HEAD, SAXPY

import ptxvm

#: Each thread stores `sqrt(x - 2)` of its element, lane 1's for all, and adds its own to a sum.
ROOTS = (
    HEAD
    + """.visible .entry roots(.param .u64 x, .param .u64 y, .param .u64 sum) {
    .reg .pred %p;
    .reg .b32 %i, %v, %w;
    .reg .f32 %r;
    .reg .b64 %x, %y, %s, %o;
    mov.u32 %i, %tid.x;
    mul.wide.u32 %o, %i, 4;
    ld.param.u64 %x, [x];
    ld.param.u64 %y, [y];
    ld.param.u64 %s, [sum];
    add.u64 %x, %x, %o;
    add.u64 %y, %y, %o;
    ld.global.b32 %v, [%x];
    sub.f32 %w, %v, 0f40000000;
    sqrt.rn.f32 %r, %w;
    shfl.sync.idx.b32 %w, %r, 1, 31, -1;
    setp.gt.u32 %p, %i, 2;
    @%p st.global.b32 [%y], %w;
    red.global.add.f32 [%s], %r;
    ret;
}
"""
)
#: All threads add 1 to a number, without atomics.
COUNT = (
    HEAD
    + """.visible .entry count(.param .u64 data) {
    .reg .b64 %p;  .reg .u32 %i;
    ld.param.u64 %p, [data];
    ld.global.u32 %i, [%p];
    add.u32 %i, %i, 1;
    st.global.u32 [%p], %i;
    ret;
}
"""
)
#: A variable of the module counts launches, and goes to memory.
LAUNCHES = (
    HEAD
    + """.global .u32 launches;
.visible .entry launch(.param .u64 out) {
    .reg .b64 %p;  .reg .u32 %i;
    ld.global.u32 %i, [launches];
    add.u32 %i, %i, 1;
    st.global.u32 [launches], %i;
    ld.param.u64 %p, [out];
    st.global.u32 [%p], %i;
    ret;
}
"""
)


def roots():
    return numpy.arange(4, dtype="f4"), numpy.zeros(4, "f4"), numpy.zeros(1, "f4")


def look(**options):
    return ptxvm.launch(ROOTS, *roots(), block=4, **options)


def test_a_race_is_a_finding():
    report = ptxvm.launch(COUNT, numpy.zeros(1, "u4"), grid=8, tool="racecheck")
    race = next(one for one in report.findings if one.code == "race-write-read")
    assert (race.tool, race.severity, race.kernel, race.space) == ("racecheck", "error", "count", "global")
    assert race.first.line in (7, 9) and race.second.line in (7, 9) and race.first.file == "<ptx>"
    assert race.first.block != race.second.block and race.first.thread == (0, 0, 0)
    assert {race.first.access, race.second.access} == {"reads", "writes"} and race.first.original is None
    assert race.count >= 1 and race.missing.startswith("a release")
    text = str(race)
    assert text.startswith("error[race-write-read]") and "st.global.u32 [%p], %i;" in text and not text.endswith("\n")
    assert repr(report).endswith(", 1 finding)") if len(report.findings) == 1 else repr(report).endswith(" findings)")
    assert pickle.loads(pickle.dumps(race)) == race


def test_findings_raise_when_asked_to():
    report = ptxvm.launch(COUNT, numpy.zeros(1, "u4"), grid=8, tool=("racecheck", "synccheck"))
    with pytest.raises(ptxvm.Error) as caught:
        report.raise_for_findings()
    error = caught.value
    assert error.code.startswith("race-") and error.findings == report.findings and error.kernel == "count"
    assert error.line == report.findings[0].first.line and str(report.findings[0]) in str(error)
    assert pickle.loads(pickle.dumps(error)).findings == error.findings
    right = ptxvm.launch(SAXPY, 32, 2.0, numpy.ones(32, "f4"), numpy.ones(32, "f4"), block=32, tool="all")
    assert right.findings == [] and right.raise_for_findings() is None
    plain = ptxvm.launch(SAXPY, 0, 2.0, None, None)
    assert plain.findings is None and plain.trace is None and plain.watch is None and plain.first_nan is None
    with pytest.raises(ValueError, match="ran no tools: tool="):
        plain.raise_for_findings()


def test_arrays_may_count_as_unwritten():
    x, y = numpy.ones(8, "f4"), numpy.ones(8, "f4")
    assert ptxvm.launch(SAXPY, 8, 2.0, x, y, block=8, tool="initcheck").findings == []
    for undefined in (y, [y], (y,)):
        report = ptxvm.launch(SAXPY, 8, 2.0, x, y, block=8, tool="initcheck", undefined=undefined)
        assert {one.tool for one in report.findings} == {"initcheck"}
        assert "ld.global.f32 %w, [%q];" in str(report.findings[0])
    with pytest.raises(ValueError, match="no array among the arguments"):
        ptxvm.launch(SAXPY, 8, 2.0, x, y, block=8, tool="initcheck", undefined=x.copy())
    with pytest.raises(ValueError, match="undefined= is for"):
        ptxvm.launch(SAXPY, 8, 2.0, x, y, block=8, undefined=y)


def test_variables_are_the_same_under_every_tool():
    module, out = ptxvm.Module(LAUNCHES), numpy.zeros(1, "u4")
    for number, tool in enumerate([None, "initcheck", "racecheck", "all", None], 1):
        module["launch"][1, 1](out, tool=tool)
        assert out[0] == number and module.read_variable("launches") == number.to_bytes(4, "little")
    module.write_variable("launches", numpy.uint32([9]))
    module["launch"][1, 1](out, tool="initcheck")
    assert out[0] == 10


def test_a_trace_has_the_steps_of_a_thread():
    trace = look(trace=(0, 3)).trace
    assert [step.line for step in trace[:3]] == [9, 10, 11] and len(trace) == 15
    sub = next(step for step in trace if "sub.f32" in step.text)
    assert sub.text == "sub.f32 %w, %v, 0f40000000;" and sub.executes and sub.address is None
    assert sub.reads == {"%v": ("f32", 0x40400000, 3.0)} and sub.writes == {"%w": ("f32", 0x3F800000, 1.0)}
    load = next(step for step in trace if "ld.global" in step.text)
    assert load.address.space == "global" and load.address.element == "0[3]"
    (store,) = (step for step in trace if "st.global" in step.text)
    assert store.reads["%p"] == ("pred", 1, True) and store.address.element == "1[3]"
    lines = str(sub).split("  ")
    assert lines[0] == "<ptx>:17" and str(sub).endswith("%v = 3 (0x40400000) -> %w = 1 (0x3f800000)")
    skipped = look(trace=((0, 0, 0), (2,))).trace
    assert [step.text for step in skipped if not step.executes] == ["@%p st.global.b32 [%y], %w;"]


def test_tables_are_made_of_them():
    import pandas

    table = pandas.DataFrame(look(trace=(0, 3)).trace)
    assert list(table.columns[:3]) == ["file", "line", "column"] and len(table) == 15
    findings = ptxvm.launch(COUNT, numpy.zeros(1, "u4"), grid=8, tool="all").findings
    assert pandas.DataFrame(findings).code.str.startswith("race-").all()


def test_a_watch_has_the_writes_to_elements():
    x, y, total = roots()
    launcher = ptxvm.Module(ROOTS)["roots"][1, 4]
    third, first, whole = launcher(x, y, total, watch=[(y, 3), (y, 0), (total, ...)]).watch
    assert (third.element, third.bytes, third.count, len(third.writes)) == ("1[3]", 4, 1, 1)
    write = third.writes[0]
    assert (write.line, write.text) == (21, "@%p st.global.b32 [%y], %w;")
    assert (write.block, write.thread) == ((0, 0, 0), (3, 0, 0))
    assert write.before == 0 and math.isnan(write.after) and isinstance(write.after, numpy.float32)
    assert first.count == 0 and str(first).endswith(": nobody wrote it")
    # Between the additions of one step nobody can look.
    assert whole.count == 4 and whole.writes[0].before == 0 and whole.writes[0].after is None
    assert str(third).splitlines()[0].startswith("1[3] (float32 at 0x") and "-> NaN (0x7fffffff)" in str(third)


def test_a_watch_takes_indices_as_numpy_does():
    module = ptxvm.Module(HEAD + """.visible .entry fill(.param .u64 y) {
        .reg .b64 %y, %o; .reg .b32 %i; .reg .b16 %h;
        mov.u32 %i, %tid.x; mul.wide.u32 %o, %i, 2; ld.param.u64 %y, [y]; add.u64 %y, %y, %o;
        cvt.rn.bf16.u32 %h, %i; st.global.b16 [%y], %h; ret; }""".replace("cvt.rn.bf16.u32 %h, %i;", "cvt.u16.u32 %h, %i;"))
    y = numpy.zeros((3, 4), "u2")
    fill = module["fill"][1, 12]

    def names(*watch):
        return [(one.element, one.writes[-1].after) for one in fill(y, watch=list(watch)).watch]

    assert names((y, (1, 2))) == [("0[6]", 6)]
    assert names((y, 1)) == [(f"0[{i}]", i) for i in range(4, 8)]
    assert names((y, (-1, slice(None, None, 2))), (y, (0, 1))) == [("0[8]", 8), ("0[10]", 10), ("0[1]", 1)]
    assert names((y[1], 0), (bytearray(0), slice(None))) == [("0[4]", 4)]
    small = numpy.zeros(12, ml_dtypes.bfloat16)
    (one,) = fill(small, watch=(small, 5)).watch
    assert one.writes[0].after.dtype == ml_dtypes.bfloat16 and one.writes[0].after.view("u2") == 5
    counter = ptxvm.Module(LAUNCHES)["launch"][1, 1]
    out = numpy.zeros(1, "u4")
    (step,) = (step for step in counter(out, trace=(0, 0)).trace if step.text == "st.global.u32 [launches], %i;")
    (seen,) = counter(out, watch=(step.address.address, 4)).watch
    assert (seen.count, seen.writes[0].before, seen.writes[0].after) == (1, 1, 2)
    assert counter(out, watch=step.address.address).watch[0].bytes == 4


def test_the_first_nan_is_found():
    (flow,) = look(first_nan=True).first_nan
    origin = flow.origin
    assert (flow.number, origin.line, origin.source, origin.count) == ("NaN", 18, "computed", 2)
    assert (origin.block, origin.thread) == ((0, 0, 0), (0, 0, 0)) and origin.reads["%w"].value == -2
    assert math.isnan(origin.writes["%r"].value) and origin.writes["%r"].bits == 0x7FFFFFFF
    passages = {passage.line: passage for passage in flow.passages}
    assert passages[19].count == 4 and passages[21].stored.element == "1[3]" and flow.others == []
    assert str(flow).startswith("the first NaN is computed by thread (0,0,0) of block (0,0,0), here 2 times:\n")
    assert "which is 1[3]" in str(flow)
    assert ptxvm.launch(SAXPY, 1, 2.0, numpy.ones(1, "f4"), numpy.ones(1, "f4"), first_nan=True).first_nan == []


def test_what_was_seen_before_a_fault_comes_with_it():
    y = numpy.ones(8, "f4")
    launcher = ptxvm.Module(SAXPY)["saxpy"][1, 16]
    arguments = (16, 2.0, numpy.ones(16, "f4"), y)
    with pytest.raises(ptxvm.Error) as caught:
        launcher(*arguments, trace=(0, 8))
    assert caught.value.code == "out-of-bounds" and caught.value.trace[-1].line < caught.value.line
    with pytest.raises(ptxvm.Error) as caught:
        ptxvm.launch(ENDLESS, trace=(0, 0), max_steps=1000)
    assert caught.value.code == "step-limit" and caught.value.trace[-1].text == "bra again;"
    with pytest.raises(ptxvm.Error) as caught:
        launcher(*arguments, watch=(y, 0))
    assert caught.value.watch[0].element == "3[0]" and caught.value.findings is None
    with pytest.raises(ptxvm.Error) as caught:
        launcher(*arguments, tool="all")
    assert isinstance(caught.value.findings, list)


def test_original_lines_are_there(root):
    x, weight = (numpy.load(root / f"examples/layer_norm/{name}.npy") for name in ("x", "weight"))
    y = numpy.zeros((4, 100), "f4")
    flow = ptxvm.launch(root / "examples/layer_norm/layer_norm.ptx", x, weight, y, 100, 1e-5, 0, grid=4, first_nan=True).first_nan[0]
    assert (flow.origin.original.line, flow.origin.original.file.endswith("layer_norm.py")) == (15, True)
    assert flow.origin.block == (2, 0, 0) and "(layer_norm.py:15)" in str(flow)


def test_wrong_questions_are_refused():
    x, y, total = roots()
    for options, kind, text in [
        ({"tool": "racechek"}, ValueError, "there is no tool `racechek`: there are memcheck, racecheck"),
        ({"tool": "racecheck", "first_nan": True}, ValueError, "tool= and first_nan= both watch the launch"),
        ({"trace": (0, 0), "engine": "interpreter"}, ValueError, "trace= runs the reference engine"),
        ({"tool": "all", "engine": "reference"}, ValueError, "the reference engine has no tool="),
        ({"trace": 3}, TypeError, "a block and a thread in it"),
        ({"trace": (0, 4)}, ValueError, "there is no thread 4: there are 4x1x1"),
        ({"trace": ((0, 1), 0)}, ValueError, r"there is no block \(0, 1\): there are 1x1x1"),
        ({"watch": (y, 4)}, IndexError, "out of bounds"),
        ({"watch": (y.copy(), 0)}, ValueError, "not among the arguments"),
        ({"watch": y}, TypeError, "an element or several"),
        ({"watch": ([1.0], 0)}, TypeError, "a list has no type: numpy.array"),
        ({"watch": (y, y > 0)}, TypeError, "numbers and slices"),
        ({"watch": (0x1000, 17)}, ValueError, "1 to 16 bytes"),
        ({"watch": (numpy.zeros(1000), slice(None))}, ValueError, "256 elements can be watched"),
        ({"wach": (y, 0)}, TypeError, "no option of a launch: .*tool, undefined, trace, watch, first_nan"),
    ]:
        with pytest.raises(kind, match=text):
            ptxvm.launch(ROOTS, x, y, total, block=4, **options)
    kernel = ptxvm.Module(ROOTS)["roots"][1, 4]
    with pytest.raises(ValueError, match="watch= and a profile both watch"):
        ptxvm.profile(kernel, x, y, total, watch=(y, 0))
    with pytest.raises(TypeError, match="tool= watches one launch"):
        ptxvm.jobs.split(kernel, x, y, total, parts=2, tool="racecheck")


def test_lists_are_refused_with_the_way_out():
    with pytest.raises(ptxvm.ArgumentError, match=r"is a list \(a list has no type: numpy.array\(\[...\], dtype="):
        ptxvm.launch(SAXPY, 3, 2.0, [1.0, 2.0, 3.0], numpy.zeros(3, "f4"))
    with pytest.raises(TypeError, match="a list has no type: numpy.array"):
        ptxvm.Texture([1.0, 2.0])
    with pytest.raises(TypeError, match="a list has no type: numpy.array"):
        ptxvm.Surface([[1, 2], [3, 4]])
    with pytest.raises(ptxvm.Error, match="a list has no type: numpy.array"):
        ptxvm.Module(LAUNCHES).write_variable("launches", [1])


def test_classes_are_named_as_programs_name_them():
    for one in (ptxvm.Error, ptxvm.ArgumentError, ptxvm.KernelNotFoundError, ptxvm.Diagnostic, ptxvm.Finding, ptxvm.Step):
        assert one.__module__ == "ptxvm" and getattr(ptxvm, one.__name__) is one


def test_types_are_named():
    from ptxvm._types import element_type

    for name in ("bf16", "bfloat16", ml_dtypes.bfloat16):
        assert element_type(name) == ml_dtypes.bfloat16
    assert element_type("float8_e5m2") == element_type("e5m2") == ml_dtypes.float8_e5m2
    assert element_type("float32") == element_type("f4") == numpy.float32
    with pytest.raises(TypeError, match="write float16"):
        element_type("f16")
