"""Bad indices and labels, which a GPU finds in a kernel: a device-side assertion."""

import ctypes
import re
import sys

import torch

#: Operators whose CUDA kernels check values of their tensors.
OPERATORS = frozenset({
    "_ctc_loss",
    "_embedding_bag",
    "_embedding_bag_forward_only",
    "_index_put_impl_",
    "binary_cross_entropy",
    "embedding",
    "embedding_dense_backward",
    "gather",
    "index",
    "index_add",
    "index_add_",
    "index_copy",
    "index_copy_",
    "index_fill_",
    "index_reduce",
    "index_select",
    "multi_margin_loss",
    "multinomial",
    "nll_loss2d_forward",
    "nll_loss_forward",
    "put_",
    "scatter",
    "scatter_",
    "scatter_add",
    "scatter_add_",
    "scatter_reduce",
    "take",
})

#: What PyTorch's CPU kernels say of such values, and not of a dimension that a tensor lacks.
_VALUES = re.compile(
    r"^(?!Dimension out of range).*(out of (bounds|range)|index \S+ is out|Target \S+ is out|INDICES element|all elements of input should be between"
    r"|probability tensor contains)",
    re.DOTALL,
)

_PTX = """\
.version 7.0
.target sm_50
.address_size 64
.extern .func __assertfail (.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
.visible .entry {name}(.param .u64 message, .param .u64 file, .param .u64 function)
{{
    .reg .b64 %a, %b, %d;
    ld.param.u64 %a, [message];
    ld.param.u64 %b, [file];
    ld.param.u64 %d, [function];
    .param .b64 p0;
    .param .b64 p1;
    .param .b32 p2;
    .param .b64 p3;
    .param .b64 p4;
    st.param.b64 [p0], %a;
    st.param.b64 [p1], %b;
    st.param.b32 [p2], 0;
    st.param.b64 [p3], %d;
    st.param.b64 [p4], 1;
    call __assertfail, (p0, p1, p2, p3, p4);
    ret;
}}
"""


def is_assertion(error):
    """Whether a CUDA kernel would have asserted what this error of a CPU kernel denies."""
    return isinstance(error, (IndexError, RuntimeError)) and bool(_VALUES.search(str(error)))


def fail(text, packet, device):
    """Has a kernel on the device assert in vain, so that the context is in the state that programs find on a GPU.

    Raises PyTorch's error of a device-side assertion.
    """
    name = f"aten_{packet}"
    driver = ctypes.CDLL("libcuda.so.1")
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    stream = ctypes.c_void_p(torch._C._cuda_getCurrentRawStream(device))
    texts = [torch.frombuffer(bytearray(word.encode() + b"\0"), dtype=torch.uint8) for word in (text, "ATen", packet)]
    with torch.cuda.device(device):
        on_device = [word.cuda() for word in texts]
        values = [ctypes.c_uint64(word.data_ptr()) for word in on_device]
        pointers = (ctypes.c_void_p * 3)(*[ctypes.addressof(value) for value in values])
        code = driver.cuModuleLoadData(ctypes.byref(module), _PTX.format(name=name).encode())
        code = code or driver.cuModuleGetFunction(ctypes.byref(function), module, name.encode())
        code = code or driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, pointers, None)
        if code:
            sys.stderr.write(f"ptxvm: no device-side assertion (error {code}): {text}\n")
            return
        torch.cuda.synchronize(device)
