"""What the chapter docs/python.md shows of Python is what happens, but for times and addresses."""

import contextlib
import io
import itertools
import operator
import re
import shutil
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor

import numpy
import pytest
from conftest import ROOT

import ptxvm

CHAPTER = (ROOT / "docs/python.md").read_text()


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", CHAPTER, re.DOTALL | re.MULTILINE)


def session(word):
    """The commands of the session that has this word, each with what it prints."""
    (block,) = (block for block in blocks("console") if word in block)
    return re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)


def masked(text):
    text = re.sub(r"seconds=[0-9.e-]+", "seconds=..", text)
    return re.sub(r"0x[0-9a-f]{10,}", "0x..", text)


def assert_printed(expected, printed):
    """`...` stands for lines that are left out."""
    lines = iter(masked(printed).splitlines())
    follows = True
    for line in masked(expected).splitlines():
        if line == "...":
            follows = False
        elif follows:
            assert next(lines, None) == line
        else:
            assert line in lines, f"{line!r} is not printed, or earlier:\n{printed}"
            follows = True


def run(arguments, folder):
    return subprocess.run(arguments, cwd=folder, capture_output=True, text=True, timeout=120)


def test_five_lines(tmp_path):
    shutil.copy(ROOT / "examples/saxpy/saxpy.ptx", tmp_path)
    (_, program), _, (_, expected) = session("cat five.py")
    (tmp_path / "five.py").write_text(program)
    assert_printed(expected, run([sys.executable, "five.py"], tmp_path).stdout)


def test_pytest(tmp_path):
    shutil.copy(ROOT / "examples/saxpy/saxpy.ptx", tmp_path)
    (test,) = (block for block in blocks("python") if "def test_saxpy" in block)
    (tmp_path / "test_saxpy.py").write_text(test)
    ((_, expected),) = session("pytest -q test_saxpy.py")
    outcome = run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_saxpy.py"], tmp_path)
    assert outcome.returncode == 1
    assert_printed(expected, outcome.stdout)


@pytest.mark.parametrize("block", blocks("pycon"), ids=itertools.count())
def test_at_the_prompt(block, monkeypatch):
    monkeypatch.chdir(ROOT)
    # Files that other tests have launched are known by the names that these gave them.
    monkeypatch.setattr(ptxvm, "_modules", type(ptxvm._modules)())
    known = {
        "ptxvm": ptxvm,
        "numpy": numpy,
        "operator": operator,
        "ProcessPoolExecutor": ProcessPoolExecutor,
        "x": numpy.arange(1000, dtype="f4"),
        "y": numpy.zeros(1000, "f4"),
    }
    for statement, expected in re.findall(r"^>>> (.*)\n((?:(?!>>> ).*\n)*)", block, re.MULTILINE):
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                exec(compile(statement, "<prompt>", "single"), known)
        except ptxvm.Error as error:
            printed.write(f"{type(error).__module__}.{type(error).__qualname__}: {error}")
        assert_printed(expected, printed.getvalue())
