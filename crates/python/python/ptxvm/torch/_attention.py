"""The fused attention kernels that PyTorch has for CUDA, by its fused CPU kernel.

Without a choice of the program, attention is products and a softmax here. A program that asks for a fused kernel
(``torch.nn.attention.sdpa_kernel``) gets the CPU's, whose results have the same meaning. It draws no random numbers, so it
takes no dropout.
"""

import torch

from ._memory import Unsupported


def prefer_products():
    """Has PyTorch choose products and softmax where the program chooses nothing."""
    torch.backends.cuda.enable_flash_sdp(False)
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    torch.backends.cuda.enable_cudnn_sdp(False)


def _forward(query, key, value, dropout, is_causal, mask, scale):
    if dropout:
        raise Unsupported("ptxvm: PyTorch's fused attention on the CPU has no dropout")
    run = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    return run(query, key, value, 0.0, is_causal, attn_mask=mask, scale=scale)


def _backward(grad, query, key, value, out, sums, is_causal, mask, scale):
    run = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
    return run(grad, query, key, value, out, sums, 0.0, is_causal, attn_mask=mask, scale=scale)


def _number():
    """In place of the state of a random generator."""
    return torch.zeros((), dtype=torch.int64)


def _flash(query, key, value, dropout_p=0.0, is_causal=False, return_debug_mask=False, *, scale=None):
    out, sums = _forward(query, key, value, dropout_p, is_causal, None, scale)
    lengths = query.size(2), key.size(2)
    return out, sums, None, None, *lengths, torch.zeros(2, dtype=torch.uint64), _number(), query.new_empty(0)


def _flash_backward(grad, query, key, value, out, sums, _1, _2, _3, _4, dropout_p, is_causal, *_, scale=None):
    return _backward(grad, query, key, value, out, sums, is_causal, None, scale)


def _efficient(query, key, value, attn_bias, compute_log_sumexp, dropout_p=0.0, is_causal=False, *, scale=None):
    out, sums = _forward(query, key, value, dropout_p, is_causal, attn_bias, scale)
    return out, sums, _number(), _number()


def _efficient_backward(
    grad, query, key, value, attn_bias, out, sums, _1, _2, dropout_p, grad_input_mask, is_causal=False, *, scale=None
):
    if grad_input_mask[3]:
        raise Unsupported("ptxvm: PyTorch's fused attention on the CPU has no gradient of the mask")
    return *_backward(grad, query, key, value, out, sums, is_causal, attn_bias, scale), None


def _cudnn(
    query, key, value, attn_bias, compute_log_sumexp, dropout_p=0.0, is_causal=False, return_debug_mask=False, *, scale=None
):
    out, sums = _forward(query, key, value, dropout_p, is_causal, attn_bias, scale)
    return out, sums, None, None, query.size(2), key.size(2), _number(), _number(), query.new_empty(0)


def _cudnn_backward(
    grad, query, key, value, out, sums, _1, _2, attn_bias, _3, _4, _5, _6, dropout_p, is_causal, *, scale=None
):
    return _backward(grad, query, key, value, out, sums, is_causal, attn_bias, scale)


def bodies():
    """What runs for each fused kernel, by its name."""
    name = "aten::_scaled_dot_product_{}_attention{}".format
    return {
        name("flash", ""): _flash,
        name("flash", "_backward"): _flash_backward,
        name("efficient", ""): _efficient,
        name("efficient", "_backward"): _efficient_backward,
        name("cudnn", ""): _cudnn,
        name("cudnn", "_backward"): _cudnn_backward,
    }
