"""The package as it is installed: its types, its command, how fast it is."""

import inspect
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import SAXPY

import ptxvm

PACKAGE = Path(ptxvm.__file__).parent


def test_it_is_the_wheel_that_is_tested():
    assert "site-packages" in str(PACKAGE)


def command(*words, **options):
    script = Path(sys.executable).with_name("ptxvm")
    return subprocess.run([script, *words], capture_output=True, text=True, timeout=60, **options)


def test_the_command_comes_with_the_package(root, tmp_path):
    done = command("eval", "setp.lt.f16", "1", "2", "--format", "json")
    assert done.returncode == 0 and json.loads(done.stdout)["results"][0]["bits"] == "1"
    assert command("check", str(root / "examples/scale/wrong.ptx")).returncode == 1
    assert command("frobnicate").returncode == 2
    assert command("--version").stdout.split() == ["ptxvm", ptxvm.__version__]
    kernel = tmp_path / "k.ptx"
    kernel.write_text(SAXPY)
    words = ["run", str(kernel), "--block", "4", "--arg", "4", "--arg", "2", "--arg", "f32[4]=1", "--arg", "f32[4]=3", "--print", "3"]
    assert "3: f32[4] = [5, 5, 5, 5]" in command(*words).stdout
    module = subprocess.run([sys.executable, "-m", "ptxvm", "--version"], capture_output=True, text=True)
    assert module.stdout == command("--version").stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "elvish", "powershell"])
def test_completions(shell):
    done = command("completions", shell)
    assert done.returncode == 0 and "explain" in done.stdout
    if shutil.which(shell) and shell == "bash":
        assert subprocess.run(["bash", "-n"], input=done.stdout, text=True).returncode == 0


def test_manual_pages(tmp_path):
    done = command("man")
    assert done.returncode == 0 and done.stdout.startswith(".ie") or ".TH ptxvm" in done.stdout
    assert command("man", str(tmp_path / "man1")).returncode == 0
    pages = {page.name for page in (tmp_path / "man1").iterdir()}
    assert {"ptxvm.1", "ptxvm-run.1", "ptxvm-check.1", "ptxvm-exec.1"} <= pages


def test_stubs_fit_the_package(tmp_path):
    stubtest = pytest.importorskip("mypy.stubtest")
    # The modules of ptxvm.torch and ptxvm.jax import PyTorch and JAX, which are not installed here.
    config, allowed = tmp_path / "mypy.ini", tmp_path / "allowed"
    config.write_text("[mypy]\n[mypy-torch.*,jax.*]\nignore_missing_imports = True\n")
    allowed.write_text(r"ptxvm\.torch\._.*" + "\n")
    words = ["ptxvm", "--ignore-missing-stub", "--mypy-config-file", str(config), "--allowlist", str(allowed)]
    done = subprocess.run([sys.executable, "-m", stubtest.__name__, *words], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


def test_everything_public_has_a_docstring():
    from ptxvm import _compare, _profile, jobs

    classes = [ptxvm.Module, ptxvm.Kernel, ptxvm.Launcher, ptxvm.Report, ptxvm.Error, ptxvm.Texture, _compare.Kernels, _profile.Profile]
    members = [(owner, name) for owner in classes for name in vars(owner) if not name.startswith("_")]
    members += [(owner, name) for owner in (ptxvm, jobs) for name in owner.__all__]
    assert [(owner.__name__, name) for owner, name in members if not inspect.getdoc(getattr(owner, name))] == []


@pytest.mark.skipif(not (PACKAGE / "lib" / "libcuda.so.1").exists(), reason="built without the libraries that programs open")
def test_programs_find_the_driver_of_the_package(tmp_path):
    program = """
import ctypes, os, subprocess
cuda = ctypes.CDLL("libcuda.so.1")
version = ctypes.c_int()
assert cuda.cuInit(0) == 0 and cuda.cuDriverGetVersion(ctypes.byref(version)) == 0
print("driver", version.value)
print(subprocess.run([os.environ["TRITON_PTXAS_PATH"], "--version"], capture_output=True, text=True).stdout.splitlines()[-1])
ctypes.CDLL("libcudart.so.12"), ctypes.CDLL("libcudart.so.13")
"""
    done = command("exec", "--quiet", "--", sys.executable, "-c", program, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("driver 1") and "release 12.9" in done.stdout


def test_import_takes_less_than_a_tenth_of_a_second():
    # Of this process alone: other work of the machine is not the package's.
    assert ptxvm_speed()["import_cpu_ms"] < 100


def ptxvm_speed():
    from ptxvm import _speed

    return _speed.measure(launches=2000, imports=5)


def test_a_small_launch_takes_less_than_30_microseconds():
    # Of a build for tests, which is not optimised, three times as long.
    slower = 1 if ptxvm._native.OPTIMIZED else 3
    assert min(ptxvm_speed()["launch_us"] for _ in range(3)) < 30 * slower
