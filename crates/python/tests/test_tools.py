"""Errors, check, explain, evaluate, profile."""

import pickle

import ml_dtypes
import numpy
import pytest
from conftest import HEAD, SAXPY

import ptxvm


def test_a_fault_names_the_line_the_thread_and_the_array():
    x = numpy.ones(1000, "f4")
    with pytest.raises(ptxvm.Error) as caught:
        ptxvm.launch(SAXPY, 1200, 2.0, x, numpy.ones(1200, "f4"), grid=5, block=256)
    error = caught.value
    assert (error.code, error.kernel, error.block, error.thread) == ("out-of-bounds", "saxpy", (3, 0, 0), (232, 0, 0))
    assert error.message.startswith("access out of bounds: read of 4 bytes at") and f"{error.address:#x}" in error.message
    line = SAXPY.split("\n")[error.line - 1]
    assert "ld.global.f32 %v" in line and line[error.column - 1 :].startswith("ld.global")
    assert "just past the end of argument 2 (`x`), 4000 bytes" in str(error) and "^^^" in error.rendered
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) and again.address == error.address and again.thread == error.thread


def test_arrays_are_what_they_were_where_the_kernel_stopped():
    x, y = numpy.ones(1000, "f4"), numpy.zeros(900, "f4")
    with pytest.raises(ptxvm.Error):
        ptxvm.launch(SAXPY, 1000, 2.0, x, y, grid=4, block=256, deterministic=True)
    assert (y[:768] == 2).all()


def test_pointers_that_a_kernel_kept_are_stale():
    text = HEAD + """.visible .global .u64 kept;
        .visible .entry keep(.param .u64 p) { .reg .b64 %p; ld.param.u64 %p, [p]; st.global.u64 [kept], %p; ret; }
        .visible .entry use() { .reg .b64 %p; ld.global.u64 %p, [kept]; st.global.u32 [%p], 1; ret; }"""
    module = ptxvm.Module(text)
    module["keep"][1, 1](numpy.zeros(4, "u4"))
    with pytest.raises(ptxvm.Error) as caught:
        module["use"][1, 1]()
    assert caught.value.code == "use-after-free"


def test_wrong_ptx():
    with pytest.raises(ptxvm.Error) as caught:
        ptxvm.Module(SAXPY.replace("fma.rn.f32 %w, %v, %a, %w", "fma.rn.f32 %w, %p, %a, %w"))
    error = caught.value
    assert error.code == "arguments-mismatch" and error.line == 22 and len(error.diagnostics) == 1
    assert error.diagnostics[0].help and str(error.diagnostics[0]) in str(error)
    with pytest.raises(ptxvm.Error, match="cannot read `nothing.ptx`") as caught:
        ptxvm.Module("nothing.ptx")
    assert caught.value.code == "unreadable-file"
    with pytest.raises(ptxvm.Error):
        ptxvm.Module(b"\xff\xfe")
    with pytest.raises(TypeError):
        ptxvm.Module(7)


def test_check(root):
    assert ptxvm.check(SAXPY) == []
    (wrong,) = ptxvm.check(root / "examples/scale/wrong.ptx")
    assert (wrong.code, wrong.severity, wrong.line, wrong.column) == ("arguments-mismatch", "error", 16, 13)
    assert wrong.file.endswith("wrong.ptx") and wrong.help.startswith("'%x' is declared .f32")
    assert len(ptxvm.check(SAXPY, target="sm_50")) == 0
    with pytest.raises(ptxvm.Error, match="is no target"):
        ptxvm.check(SAXPY, target="sm_7")
    sine = SAXPY.replace("fma.rn.f32 %w, %v, %a, %w;", ".reg .f64 %d; sin.approx.f64 %d, %d;")
    assert [one.severity for one in ptxvm.check(sine)] == ["error"]
    assert [one.severity for one in ptxvm.check(sine, lenient=True)] == ["warning"]
    assert len(ptxvm.Module(sine, lenient=True).warnings) == 1


def test_explain():
    page = ptxvm.explain("setp.lt.f16x2")
    assert page.startswith("# setp.lt.f16x2") and page._repr_markdown_() == page
    assert ptxvm.explain(".ftz").startswith("# .ftz")
    with pytest.raises(ptxvm.Error) as caught:
        ptxvm.explain("setpp")
    assert caught.value.code == "no-such-name" and "setp" in str(caught.value)


def test_evaluate_numbers_and_arrays():
    assert ptxvm.evaluate("setp.lt.f16", 1.0, 2.0) is numpy.True_
    a, b = numpy.float16([1, numpy.nan, -0.0, 3]), numpy.float16([2, 1, 0.0, 3])
    p = ptxvm.evaluate("setp.lt.f16", a, b)
    assert p.dtype == bool and p.tolist() == [True, False, False, False]
    p, q = ptxvm.evaluate("setp.lt.f16x2", a.reshape(2, 2), b.reshape(2, 2))
    assert p.tolist() == [True, False] and q.tolist() == [False, False]
    x = numpy.random.default_rng(0).normal(size=(3, 1)).astype("f4")
    y = numpy.random.default_rng(1).normal(size=(1, 5)).astype("f4")
    total = ptxvm.evaluate("add.f32", x, y)
    assert total.shape == (3, 5) and numpy.array_equal(total, x + y)
    assert ptxvm.evaluate("add.s32", -1, 3) == 2 and ptxvm.evaluate("add.u32", -1, 0) == 2**32 - 1
    assert ptxvm.evaluate("lop3.b32", 0xF0, 0xCC, 0xAA, 0x80) == 0xF0 & 0xCC & 0xAA
    assert ptxvm.evaluate("neg.s16", numpy.int16([5])).tolist() == [-5]
    assert ptxvm.evaluate("add.f32", numpy.zeros((0, 3), "f4"), 1).shape == (0, 3)
    assert ptxvm.evaluate("addc.s32", 1, 2, True) == 4


def test_evaluate_packed_and_small_types():
    a = numpy.float16([[1, 2], [3, 4]])
    total = ptxvm.evaluate("add.f16x2", a, a)
    assert total.dtype == numpy.float16 and numpy.array_equal(total, a + a)
    assert numpy.array_equal(ptxvm.evaluate("add.f16x2", numpy.uint32([0x40003C00]), numpy.uint32([0x3C00])), [[2, 2]])
    b = numpy.array([1, 2.5], ml_dtypes.bfloat16)
    assert ptxvm.evaluate("mul.bf16", b, b).dtype == ml_dtypes.bfloat16
    assert numpy.array_equal(ptxvm.evaluate("mul.bf16", b, b), b * b)
    pair = ptxvm.evaluate("cvt.rn.satfinite.e4m3x2.f32", 1.5, 2.0)
    assert pair.dtype == ml_dtypes.float8_e4m3fn and pair.tolist() == [2.0, 1.5]


def test_evaluate_says_what_is_wrong():
    for instruction, operands, kind, text in [
        ("add.f32", (numpy.zeros(3), 1), TypeError, "operand a is .f32: an array of float32"),
        ("add.f32", (1,), ptxvm.Error, "takes 2 source operands"),
        ("ad.f32", (1, 2), ptxvm.Error, "did you mean 'add'"),
        ("ld.global.u32", (1,), ptxvm.Error, "not pure"),
        ("add.u32", (2**32, 1), OverflowError, "more than 32 bits"),
        ("add.u32", (1.5, 1), TypeError, "an integer, not 1.5"),
        ("selp.u32", (1, 2, 0.5), TypeError, "an integer, not 0.5"),
        ("selp.u32", (1, 2, numpy.zeros(3)), TypeError, "no array of float64"),
        ("add.f32", (numpy.zeros(3, "f4"), numpy.zeros(4, "f4")), ValueError, "broadcast"),
        ("add.f32", (numpy.zeros(3, ">f4"), 1), TypeError, "highest byte"),
    ]:
        with pytest.raises(kind, match=text):
            ptxvm.evaluate(instruction, *operands)


@pytest.mark.parametrize("instruction, types", [
    ("fma.rn.f32", "fff"), ("setp.ltu.ftz.f16", "hh"), ("setp.lt.and.f16x2", "IIp"), ("add.sat.s32", "II"), ("mul.wide.s16", "hh"),
    ("mad.hi.u64", "QQQ"), ("cvt.rzi.s8.f32", "I"), ("cvt.rn.f32.s8", "B"), ("min.s16x2", "II"), ("rcp.approx.f32", "I"), ("lop3.b32", "IIII"),
    ("addc.cc.u32", "IIp"), ("subc.u64", "QQp"), ("selp.b64", "QQp"), ("bfe.s32", "III"), ("shf.l.wrap.b32", "III"), ("sin.approx.f32", "I"),
    ("cvt.rn.f16x2.e4m3x2", "H"), ("fma.rn.bf16x2", "III"), ("slct.f32.s32", "II I"), ("vadd.s32.u32.s32.sat", "II"), ("div.rn.f64", "QQ"),
    ("mul.lo.s16", "hh"), ("add.f64", "QQ"), ("testp.subnormal.f32", "I"), ("popc.b64", "Q"), ("dp4a.s32.s32", "III"),
])  # fmt: skip
def test_vector_handlers_agree_with_the_meaning(instruction, types):
    from ptxvm._evaluate import evaluate

    random = numpy.random.default_rng(7)
    sizes = {"h": "u2", "H": "u2", "I": "u4", "f": "u4", "Q": "u8", "B": "u1"}
    operands = []
    for letter in types.replace(" ", ""):
        if letter == "p":
            operands.append(random.integers(0, 2, 5000).astype(bool))
        else:
            operands.append(random.integers(0, 1 << 8 * int(sizes[letter][1]), 5000, sizes[letter]))
    fast, plain = (evaluate(instruction, operands, plain=how) for how in (False, True))
    for one, other in zip(*(r if isinstance(r, tuple) else (r,) for r in (fast, plain))):
        assert one.tobytes() == other.tobytes()
    # One value for all lanes, and one lane.
    uniform = [operands[0], *(operand[:1] for operand in operands[1:])]
    single = [operand[3] for operand in operands]
    for some in [uniform, single]:
        fast, plain = (evaluate(instruction, some, plain=how) for how in (False, True))
        for one, other in zip(*(r if isinstance(r, tuple) else (r,) for r in (fast, plain))):
            assert numpy.asarray(one).tobytes() == numpy.asarray(other).tobytes()


def test_profile(root):
    import pandas

    module = ptxvm.Module(root / "examples/mandelbrot/mandelbrot.ptx")
    out = numpy.zeros((121, 161), "u4")
    with pytest.raises(TypeError, match="mandelbrot\\[grid, block\\]"):
        ptxvm.profile(module["mandelbrot"], out)
    profile = ptxvm.profile(module["mandelbrot"][(11, 16), (16, 8)], out, 161, 121, 256, -2.2, 1.2, 0.02)
    table = pandas.DataFrame(profile)
    assert list(table.columns[:5]) == ["file", "line", "text", "source", "executions"] and len(table) == len(profile)
    assert table.threads.sum() == profile.report.thread_instructions and abs(table.share.sum() - 1) < 1e-6
    assert profile.hottest(1)[0].share == table.share.max() and out.max() > 0
    branch = next(line for line in profile if line.diverged)
    assert 0 < branch.active_lanes <= 32 and "bra" in branch.text
    assert "executions" in str(profile) and profile.page.startswith("<!DOCTYPE html>")
    html = profile._repr_html_()
    assert "<svg" in html and "srcdoc=" in html and "#d9480f" in html and "<!DOCTYPE" not in html
    import xml.etree.ElementTree

    picture = xml.etree.ElementTree.fromstring(profile.divergence())
    assert len(picture) == 4 * sum(line.executions > 0 for line in profile)


def test_profile_saves(tmp_path):
    x = numpy.ones(64, "f4")
    profile = ptxvm.profile(ptxvm.Module(SAXPY)["saxpy"][1, 64], 64, 1.0, x, x)
    profile.save(tmp_path / "p.html")
    profile.save(tmp_path / "p.txt")
    assert (tmp_path / "p.html").read_text() == profile.page and "fma.rn.f32" in (tmp_path / "p.txt").read_text()
