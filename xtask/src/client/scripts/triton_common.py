"""What scripts of kernels in Triton share: its driver without PyTorch, arrays in device memory, and a line for each kernel."""
import ctypes
import sys

import ml_dtypes
import numpy as np
import triton
import triton.language as tl
from triton.backends.nvidia.driver import CudaDriver
from triton.runtime.driver import driver as active

CHOSEN = sys.argv[1:]
random = np.random.default_rng(0)
cuda = ctypes.CDLL("libcuda.so.1")


def check(status):
    assert status == 0, f"CUresult {status}"


def attribute(number):
    value = ctypes.c_int()
    check(cuda.cuDeviceGetAttribute(ctypes.byref(value), number, 0))
    return value.value


check(cuda.cuInit(0))
context = ctypes.c_void_p()
check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
check(cuda.cuCtxSetCurrent(context))
CAPABILITY = attribute(75), attribute(76)


class Driver(CudaDriver):
    """Triton's driver asks PyTorch for these."""

    def __init__(self):
        import triton.backends.nvidia.driver as module

        self.utils, self.launcher_cls = module.CudaUtils(), module.CudaLauncher
        self.get_current_device = lambda: 0
        self.set_current_device = lambda device: None
        self.get_current_stream = lambda device: 0
        self.get_device_capability = lambda device=0: CAPABILITY


active.set_active(Driver())


class Descriptor:
    """The bytes of a tensor map, for which Triton takes memory of PyTorch."""

    def __init__(self):
        self.memory = ctypes.create_string_buffer(256)

    def tma_desc_cpu_ptr(self):
        return -(-ctypes.addressof(self.memory) // 128) * 128


triton.backends.nvidia.driver.TmaDescKernelParam = Descriptor


class Kind(str):
    """The name of a type, as PyTorch's types have one, and its size."""

    def __new__(cls, dtype):
        # Triton goes by the name.
        kind = super().__new__(cls, {"bool": "int1"}.get(str(dtype), str(dtype)))
        kind.itemsize = dtype.itemsize
        return kind


class Array:
    """Device memory with the contents of an array of numpy."""

    def __init__(self, values):
        values = np.ascontiguousarray(values)
        self.shape, self.kind, self.bytes = values.shape, values.dtype, values.nbytes
        self.dtype = Kind(values.dtype)
        self.address = ctypes.c_uint64()
        check(cuda.cuMemAlloc_v2(ctypes.byref(self.address), max(self.bytes, 1)))
        check(cuda.cuMemcpyHtoD_v2(self.address, values.ctypes.data_as(ctypes.c_void_p), self.bytes))

    def data_ptr(self):
        return self.address.value

    def numpy(self):
        values = np.empty(self.shape, self.kind)
        check(cuda.cuMemcpyDtoH_v2(values.ctypes.data_as(ctypes.c_void_p), self.address, self.bytes))
        return values


def report(name, work, since=(0, 0)):
    name = f"{name}.sm_{CAPABILITY[0]}{CAPABILITY[1]}"
    if CHOSEN and not any(word in name for word in CHOSEN):
        return
    if CAPABILITY < since:
        print(f"skipped {name}: sm_{since[0]}{since[1]} has it", flush=True)
        return
    try:
        work()
        print("passed", name, flush=True)
    except Exception as error:
        print(f"failed {name}: {type(error).__name__}: {str(error).strip().splitlines()[:6]}", flush=True)


def close(got, wanted, tolerance=1e-5):
    np.testing.assert_allclose(np.asarray(got, np.float64), np.asarray(wanted, np.float64), rtol=tolerance, atol=tolerance)


def uniform(*shape, kind=np.float32):
    return random.uniform(-1, 1, shape).astype(kind)
