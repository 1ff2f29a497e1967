"""NVML of the package, as `nvidia-ml-py` (`import pynvml`) uses it."""

import subprocess
import sys
from pathlib import Path

import pytest

import ptxvm

pytest.importorskip("pynvml")
PACKAGE = Path(ptxvm.__file__).parent
pytestmark = pytest.mark.skipif(not (PACKAGE / "lib" / "libnvidia-ml.so.1").exists(), reason="built without the libraries that programs open")

PROGRAM = r"""
import ctypes, os, re
import pynvml as nvml

# Each function that the module could call is there.
library = ctypes.CDLL("libnvidia-ml.so.1")
names = re.findall(r'_nvmlGetFunctionPointer\("(nvml\w+)"', open(nvml.__file__).read())
assert len(names) > 300 and [name for name in names if not hasattr(library, name)] == []

nvml.nvmlInit()
assert nvml.nvmlDeviceGetCount() == 2
first = nvml.nvmlDeviceGetHandleByIndex(0)
assert nvml.nvmlDeviceGetName(first) == "NVIDIA A100-SXM4-80GB"
assert nvml.nvmlDeviceGetCudaComputeCapability(first) == (8, 0)
assert nvml.nvmlDeviceGetIndex(nvml.nvmlDeviceGetHandleByUUID(nvml.nvmlDeviceGetUUID(first))) == 0
assert nvml.nvmlDeviceGetIndex(nvml.nvmlDeviceGetHandleByPciBusId(nvml.nvmlDeviceGetPciInfo(first).busId)) == 0
assert nvml.nvmlDeviceGetMemoryInfo(first, nvml.nvmlMemory_v2).total == 1 << 30
assert nvml.nvmlDeviceGetUtilizationRates(first).gpu == 0
try:
    nvml.nvmlDeviceGetTemperature(first, nvml.NVML_TEMPERATURE_GPU)
except nvml.NVMLError_NotSupported:
    pass
else:
    raise AssertionError("a temperature")

cuda, context, address = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_void_p()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(1 << 20)) == 0
[process] = nvml.nvmlDeviceGetComputeRunningProcesses(first)
assert (process.pid, process.usedGpuMemory) == (os.getpid(), 1 << 20)
assert nvml.nvmlDeviceGetMemoryInfo(first).used == 1 << 20
print("seen")
"""


def test_nvidia_ml_py_sees_the_devices_of_the_driver(tmp_path, monkeypatch):
    monkeypatch.setenv("PTXVM_DEVICE_COUNT", "2")
    monkeypatch.setenv("PTXVM_DEVICE_MEMORY", "1G")
    command = Path(sys.executable).with_name("ptxvm")
    words = ["exec", "--quiet", "--device", "sm_80", "--", sys.executable, "-c", PROGRAM]
    done = subprocess.run([command, *words], capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "seen\n"), done.stderr
