"""What the operators need of the CUDA runtime and of ptxvm's driver: streams, and what the host has written."""

import ctypes
import os

import torch

_runtime = None
_host_wrote = None
_raw_stream = torch._C._cuda_getCurrentRawStream

#: Whether some tool must know which bytes of device memory have been written.
TRACKS_WRITES = bool({"initcheck", "all"} & set(os.environ.get("PTXVM_TOOL", "").split(",")))

#: A function that the runtime calls in stream order.
HOST_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def open_libraries():
    """Opens the runtime that PyTorch uses, and ptxvm's driver.

    Raises ``OSError`` where the driver is not ptxvm's, or its memory is out of the host's reach.
    """
    global _runtime, _host_wrote
    driver = ctypes.CDLL("libcuda.so.1")
    try:
        _host_wrote = driver.ptxvm_host_wrote
    except AttributeError:
        raise OSError("libcuda.so.1 is not ptxvm's: start the program with `ptxvm exec -- ...`") from None
    if not driver.ptxvm_has_host_access():
        raise OSError("the CUDA driver has started before `import torch`: set PTXVM_HOST_ACCESS=1 for this program")
    _host_wrote.argtypes = [ctypes.c_uint64, ctypes.c_uint64]
    _host_wrote.restype = None
    _runtime = ctypes.CDLL("libcudart.so." + torch.version.cuda.split(".")[0])
    _runtime.cudaStreamSynchronize.argtypes = [ctypes.c_void_p]
    _runtime.cudaLaunchHostFunc.argtypes = [ctypes.c_void_p, HOST_FUNCTION, ctypes.c_void_p]


def synchronize(device):
    """Waits for the current stream of a device, given by its number; a fault of a kernel is PyTorch's error here."""
    if _runtime.cudaStreamSynchronize(_raw_stream(device)):
        torch.cuda.current_stream(device).synchronize()


def launch_host_function(function, device):
    """Has the current stream call a :data:`HOST_FUNCTION`: while a graph is captured, whenever that graph runs."""
    error = _runtime.cudaLaunchHostFunc(_raw_stream(device), function, None)
    if error:
        raise RuntimeError(f"CUDA error {error} of cudaLaunchHostFunc")


def wrote(tensor):
    """Tells the driver that the host has written a host view of device memory (see ``_memory``)."""
    size, stride, width = tensor.size(), tensor.stride(), tensor.element_size()
    dimensions = sorted((s, n) for n, s in zip(size, stride) if n != 1)
    if any(n == 0 for n in size):
        return
    run = 1
    while dimensions and dimensions[0][0] <= run:
        step, count = dimensions.pop(0)
        run = max(run, step * (count - 1) + run)
    _wrote_runs(tensor.data_ptr(), dimensions, width, run * width)


def _wrote_runs(address, dimensions, width, count):
    if not dimensions:
        _host_wrote(address, count)
        return
    step, number = dimensions[-1]
    for index in range(number):
        _wrote_runs(address + index * step * width, dimensions[:-1], width, count)
