"""The GitHub Action (`action.yml`): its step, run as GitHub runs it."""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from conftest import ROOT

import ptxvm

COMMAND = Path(sys.executable).with_name("ptxvm")
pytestmark = [
    pytest.mark.skipif(not (Path(ptxvm.__file__).parent / "lib" / "libcuda.so.1").exists(), reason="built without the libraries that programs open"),
    pytest.mark.skipif(not COMMAND.exists() or not shutil.which("bash"), reason="needs the command and bash"),
]

PROGRAM = r"""
import ctypes
cuda, device, major, minor = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
assert cuda.cuInit(0) == 0 and cuda.cuDeviceGet(ctypes.byref(device), 0) == 0
assert cuda.cuDeviceComputeCapability(ctypes.byref(major), ctypes.byref(minor), device) == 0
print(major.value, minor.value)
"""


def run_step(tmp_path, **inputs):
    """Runs the step; returns what pip was asked for, and the environment of the steps after it."""
    script = textwrap.dedent((ROOT / "action.yml").read_text().split("      run: |\n")[1])
    programs = tmp_path / "bin"
    programs.mkdir()
    asked = tmp_path / "asked"
    (programs / "python").write_text(f'#!/bin/sh\necho "$*" >> {asked}\n')
    (programs / "python").chmod(0o755)
    (programs / "ptxvm").symlink_to(COMMAND)
    file, path = tmp_path / "environment", tmp_path / "path"
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "RUNNER_TEMP": str(tmp_path), "GITHUB_ENV": str(file),
                   "GITHUB_PATH": str(path), "VERSION": "", "DEVICE": "sm_90", "TOOL": "", **inputs}
    subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script], env=environment, check=True)
    later = {**os.environ, **dict(line.split("=", 1) for line in file.read_text().splitlines())}
    later["PATH"] = f"{path.read_text().strip()}:{later['PATH']}"
    return asked.read_text().strip(), later


def test_later_steps_find_the_driver(tmp_path):
    asked, environment = run_step(tmp_path, DEVICE="sm_80", TOOL="racecheck,initcheck")
    assert asked == "-m pip install ptxvm"
    assert environment["PTXVM_TOOL"] == "racecheck,initcheck" and environment["PYTORCH_NO_CUDA_MEMORY_CACHING"] == "1"
    output = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True).stdout
    assert output.split() == ["8", "0"]
    devices = subprocess.run(["nvidia-smi", "-L"], env=environment, capture_output=True, text=True, check=True).stdout
    assert devices.startswith("GPU 0:")


@pytest.mark.parametrize("version, requirement", [("==0.1.0", "ptxvm==0.1.0"), ("~=1.2", "ptxvm~=1.2"), ("dist/a.whl", "dist/a.whl")])
def test_the_release_is_chosen(tmp_path, version, requirement):
    asked, environment = run_step(tmp_path, VERSION=version)
    assert asked == f"-m pip install {requirement}"
    assert "PTXVM_TOOL" not in environment
