"""Layer normalisation in Triton: y = (x - mean) / sqrt(variance + eps) * weight for each row."""

import triton
import triton.language as tl


@triton.jit
def layer_norm(x_ptr, weight_ptr, y_ptr, columns, eps, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    row = tl.program_id(0) * columns + offsets
    x = tl.load(x_ptr + row, mask=mask, other=0.0)
    mean = tl.sum(x) / columns
    variance = tl.sum(x * x) / columns - mean * mean
    scale = tl.math.rsqrt(variance + eps)
    weight = tl.load(weight_ptr + offsets, mask=mask)
    tl.store(y_ptr + row, (x - mean) * scale * weight, mask=mask)
