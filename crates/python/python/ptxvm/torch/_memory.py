"""Host views of device memory, and device tensors for results of CPU kernels."""

import ctypes

import torch

from . import _driver

_CPU = torch.device("cpu")
_strided = torch.strided
_storage = torch._C._construct_storage_from_data_pointer
_move = ctypes.memmove
_new_empty: dict = {}
_is_inference = torch.is_inference_mode_enabled
#: Views of device memory by address, bytes, offset, type, sizes and strides.
_kept: dict = {}
_MOST_KEPT = 4096
#: Addresses of the host have no more bits; the driver's own addresses of 64 bits begin above.
_HOST_BITS = 47
_empty_strided = torch.empty_strided
_COMPRESSED_ROWS = (torch.sparse_csr, torch.sparse_bsr)
_COMPRESSED = (*_COMPRESSED_ROWS, torch.sparse_csc, torch.sparse_bsc)


class Unsupported(NotImplementedError):
    """A kind of tensor, or an operator, that PyTorch's CPU kernels cannot take."""


def to_read(tensor):
    """A CPU tensor as :func:`on_host` makes it, which nobody may write or resize.

    It is kept: a view is the same for the same address, type and strides, whichever tensor has them. That saves a tenth of
    what a small operator costs.
    """
    if tensor.layout is not _strided or tensor.is_nested or tensor.is_conj() or tensor.is_neg() or _is_inference():
        return on_host(tensor)
    storage = tensor.untyped_storage()
    address = storage.data_ptr()
    key = address, storage.nbytes(), tensor.storage_offset(), tensor.dtype, tensor.size(), tensor.stride()
    host = _kept.get(key)
    if host is None:
        host = on_host(tensor)
        # Zeros that have no memory have no address.
        if address:
            if len(_kept) >= _MOST_KEPT:
                _kept.clear()
            _kept[key] = host
    return host


def on_host(tensor):
    """A CPU tensor on the memory of a CUDA tensor. The caller keeps the CUDA tensor alive.

    Raises :class:`Unsupported` where the memory has no address of the host: a variable of a module, or what ``cuMemMap`` maps.
    """
    if tensor.layout is not _strided:
        return _sparse_on_host(tensor)
    if tensor.is_nested:
        return _nested(on_host, tensor)
    storage = tensor.untyped_storage()
    count = storage.nbytes()
    if count == 0 or tensor._is_zerotensor():
        host = _empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device=_CPU)
        return host.zero_() if count else host
    dtype = tensor.dtype
    # A new tensor like another one costs half of what one with keywords does.
    new = _new_empty.get(dtype)
    if new is None:
        new = _new_empty[dtype] = torch.empty(0, dtype=dtype, device=_CPU).new_empty
    address = storage.data_ptr()
    if address >> _HOST_BITS:
        raise Unsupported(f"ptxvm: the host does not reach the device memory at {address:#x}")
    host = new(0)
    host.set_(_storage(address, _CPU, count), tensor.storage_offset(), tensor.size(), tensor.stride())
    if tensor.is_conj():
        host = torch._conj(host)
    if tensor.is_neg():
        host = torch._neg_view(host)
    return host


def _sparse_on_host(tensor):
    if tensor.layout is torch.sparse_coo:
        return _coo(on_host(tensor._indices()), on_host(tensor._values()), tensor)
    if tensor.layout in _COMPRESSED:
        return _compressed(on_host, tensor)
    raise Unsupported(f"ptxvm: no CPU kernel for tensors of layout {tensor.layout}")


def _coo(indices, values, like):
    made = torch.ops.aten._sparse_coo_tensor_unsafe.default(indices, values, like.size())
    return made._coalesced_(like.is_coalesced())


def _compressed(convert, tensor):
    """A compressed sparse tensor, each part of which `convert` brings to where it belongs."""
    by_rows = tensor.layout in _COMPRESSED_ROWS
    outer = tensor.crow_indices() if by_rows else tensor.ccol_indices()
    inner = tensor.col_indices() if by_rows else tensor.row_indices()
    values = convert(tensor.values())
    return torch.ops.aten._sparse_compressed_tensor_unsafe.default(
        convert(outer), convert(inner), values, tensor.size(),
        dtype=values.dtype, layout=tensor.layout, device=values.device,
    )


def _nested(convert, tensor):
    """A nested tensor, whose values `convert` brings to where it belongs. Sizes and offsets are on the CPU always."""
    aten = torch.ops.aten
    sizes = aten._nested_tensor_size.default(tensor)
    strides = aten._nested_tensor_strides.default(tensor)
    offsets = aten._nested_tensor_storage_offsets.default(tensor)
    return aten._nested_view_from_buffer.default(convert(aten.values.default(tensor)), sizes, strides, offsets)


def extent(size, stride):
    """The number of elements from the first to behind the last one of a strided tensor."""
    last = 0
    for count, step in zip(size, stride):
        if count == 0:
            return 0
        last += (count - 1) * step
    return last + 1


def on_device(result, device):
    """A new CUDA tensor with the values and the strides of a CPU tensor."""
    if result.layout is torch.sparse_coo:
        parts = result._indices(), result._values()
        return _coo(*(on_device(part, device) for part in parts), result)
    if result.layout in _COMPRESSED:
        return _compressed(lambda part: on_device(part, device), result)
    if result.is_nested:
        return _nested(lambda values: on_device(values, device), result)
    if result.is_conj():
        result = result.resolve_conj()
    if result.is_neg():
        result = result.resolve_neg()
    size, stride = result.size(), result.stride()
    made = _empty_strided(size, stride, dtype=result.dtype, device=device)
    if result._is_zerotensor():
        on_host(made).zero_()
    else:
        # An empty tensor has an extent of 0.
        count = result.numel() if result.is_contiguous() else extent(size, stride)
        _move(made.data_ptr(), result.data_ptr(), count * result.element_size())
    if _driver.TRACKS_WRITES:
        _driver.wrote(made)
    return made


def give_back(host, tensor):
    """Brings a result into `tensor` where the CPU kernel has resized the host view of it, or taken other memory."""
    if tensor.layout is not torch.strided:
        _give_back_sparse(host, tensor)
        return
    moved = host.data_ptr() != tensor.data_ptr()
    if host.size() != tensor.size() or host.stride() != tensor.stride():
        tensor.resize_(host.size())
        if host.stride() != tensor.stride():
            storage, count = tensor.untyped_storage(), extent(host.size(), host.stride()) * host.element_size()
            if storage.nbytes() < count:
                storage.resize_(count)
            tensor.as_strided_(host.size(), host.stride())
        # What it held has been copied in the order of the stream.
        _driver.synchronize(tensor.get_device())
    if moved and host.numel():
        on_host(tensor).copy_(host)


def _give_back_sparse(host, tensor):
    if tensor.layout is not torch.sparse_coo:
        # The parts of a compressed tensor have been written in place.
        return
    indices, values = host._indices(), host._values()
    same = indices.data_ptr() == tensor._indices().data_ptr() and values.data_ptr() == tensor._values().data_ptr()
    if not same or host.size() != tensor.size() or host._nnz() != tensor._nnz():
        made = on_device(host, tensor.device)
        tensor.sparse_resize_and_clear_(made.size(), made.sparse_dim(), made.dense_dim())
        torch.ops.aten.copy_sparse_to_sparse_.default(tensor, made)
    tensor._coalesced_(host.is_coalesced())
