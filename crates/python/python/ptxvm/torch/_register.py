"""Which operators PyTorch has for CUDA, and what each of them runs here."""

import warnings

import torch

from . import _attention, _cells, _driver
from ._memory import Unsupported
from ._operators import Operator

_C = torch._C

#: Operators that look at sizes and storages only, which PyTorch does without the device.
_KEPT = frozenset({
    "_efficientzerotensor",
    "empty.memory_format",
    "empty_strided",
    "record_stream",
    "resize_",
    "set_",
    "set_.source_Storage",
    "set_.source_Storage_storage_offset",
    "set_.source_Tensor",
})

#: The same for sparse tensors, whose parts are dense ones.
_KEPT_SPARSE = frozenset({
    "_coalesced_",
    "_dimI",
    "_dimV",
    "_indices",
    "_nnz",
    "_sparse_coo_tensor_with_dims",
    "_sparse_coo_tensor_with_dims_and_tensors",
    "_values",
    "ccol_indices",
    "clone",
    "col_indices",
    "crow_indices",
    "dense_dim",
    "empty",
    "empty_like",
    "indices",
    "is_coalesced",
    "resize_",
    "row_indices",
    "sparse_dim",
    "sparse_resize_",
    "sparse_resize_and_clear_",
    "values",
})

#: The same for nested tensors, whose values are one dense tensor.
_KEPT_NESTED = frozenset({
    "_fused_sdp_choice",
    "_nested_tensor_size",
    "_nested_tensor_storage_offsets",
    "_nested_tensor_strides",
    "_to_copy",
    "clone",
    "copy_",
    "empty_like",
    "is_same_size",
    "values",
})

#: Operators for all devices that would otherwise choose a library of NVIDIA's for CUDA tensors.
_FOR_ALL_DEVICES = frozenset({"aten::copy_", "aten::convolution", "aten::convolution_backward"})


def _in_dtype(overload):
    """A product whose result has a type of its own: computed in that type."""

    def body(*values, dtype=None, out=None, out_dtype=None, **kwargs):
        values = list(values)
        dtype = out_dtype or next(value for value in values if isinstance(value, torch.dtype))
        values = [value.to(dtype) if isinstance(value, torch.Tensor) else value for value in values if value is not dtype]
        result = overload(*values, **kwargs)
        return result if out is None else out.resize_(result.size()).copy_(result)

    return body


def _bodies():
    """What runs in place of operators that the CPU has not."""
    aten = torch.ops.aten
    bodies = {
        "aten::_thnn_fused_lstm_cell": _cells.lstm_cell,
        "aten::_thnn_fused_lstm_cell_backward_impl": _cells.lstm_cell_backward,
        "aten::_thnn_fused_gru_cell": _cells.gru_cell,
        "aten::_thnn_fused_gru_cell_backward": _cells.gru_cell_backward,
    }
    for name in ("_use_cudnn_ctc_loss", "_use_miopen_ctc_loss"):
        for overload in ("", ".Tensor"):
            bodies[f"aten::{name}{overload}"] = lambda *_, **__: False
    for name in ("mm", "bmm", "addmm", "baddbmm"):
        for overload in ("dtype", "dtype_out"):
            bodies[f"aten::{name}.{overload}"] = _in_dtype(getattr(aten, name).default)
    bodies.update(_attention.bodies())
    return bodies


def _overload(name):
    """The operator of a name such as ``aten::add.Tensor``, if Python sees it."""
    packet, _, overload = name.partition("::")[2].partition(".")
    try:
        return getattr(getattr(torch.ops.aten, packet), overload or "default")
    except AttributeError:
        return None


def _is_view(overload):
    return any(result.alias_info and not result.alias_info.is_write for result in overload._schema.returns)


def _has_kernel(name, key):
    return _C._dispatch_has_kernel_for_dispatch_key(name, key)


def _runs_on_cpu(name):
    keys = ("CPU", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional", "CompositeImplicitAutograd")
    return any(_has_kernel(name, key) for key in keys)


def _refusal(name):
    def refuse(*_, **__):
        raise Unsupported(f"ptxvm: PyTorch has no CPU kernel of {name}, which would run here")

    return refuse


def _dense_kernel(name, overload, bodies, decompositions):
    body = bodies.get(name)
    if body is None and not _runs_on_cpu(name):
        body = decompositions.get(overload)
        if body is None:
            return _refusal(name)
    return Operator(overload, body).kernel()


def install():
    """Registers a kernel for each operator that PyTorch has for CUDA. Does nothing the second time."""
    if hasattr(install, "library"):
        return
    _driver.open_libraries()
    # Their kernels are machine code; what else PyTorch has for CUDA leads to operators of this list.
    torch.backends.cudnn.enabled = False
    _attention.prefer_products()
    from torch._decomp import decomposition_table

    bodies = _bodies()
    # Kept for the life of the process: without it PyTorch removes the kernels.
    install.library = library = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dense = set(_C._dispatch_get_registrations_for_dispatch_key("CUDA")) | _FOR_ALL_DEVICES
        for name in sorted(dense):
            overload = _overload(name) if name.startswith("aten::") else None
            if overload is None or name.partition("::")[2] in _KEPT or _is_view(overload):
                continue
            kernel = _dense_kernel(name, overload, bodies, decomposition_table)
            library.impl(overload, kernel, "CUDA", allow_override=True)
        kept = {"SparseCUDA": _KEPT_SPARSE, "SparseCsrCUDA": _KEPT_SPARSE, "NestedTensorCUDA": _KEPT_NESTED}
        for key, names in kept.items():
            for name in sorted(_C._dispatch_get_registrations_for_dispatch_key(key)):
                overload = _overload(name) if name.startswith("aten::") else None
                if overload is None or overload._schema.name.partition("::")[2] in names or _is_view(overload):
                    continue
                library.impl(overload, Operator(overload, bodies.get(name)).kernel(), key, allow_override=True)
