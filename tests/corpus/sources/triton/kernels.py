"""Kernels in Triton's language. `N` is the number of elements of a block; what is behind the end of an array is masked."""

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def add(x, y, out, n, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out + at, tl.load(x + at, at < n) + tl.load(y + at, at < n), at < n)


@triton.jit
def clampwhere(x, y, out, n, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    a, b = tl.load(x + at, at < n), tl.load(y + at, at < n)
    tl.store(out + at, tl.where(a > b, tl.clamp(a, -1.0, 1.0), b), at < n)


@triton.jit
def relu(x, out, n, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    a = tl.load(x + at, at < n)
    tl.store(out + at, tl.where(a > 0, a, 0.0), at < n)


@triton.jit
def gelu(x, out, n, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    a = tl.load(x + at, at < n).to(tl.float32)
    tl.store(out + at, (0.5 * a * (1 + libdevice.tanh(0.7978845608 * (a + 0.044715 * a * a * a)))).to(out.dtype.element_ty), at < n)


@triton.jit
def int(x, y, out, n, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    a, b = tl.load(x + at, at < n, 1), tl.load(y + at, at < n, 1)
    tl.store(out + at, (a << 3) + (a >> 2) + (a ^ b) + (a & b) + tl.minimum(a, b) + a // b + a % b + tl.umulhi(a, b), at < n)


@triton.jit
def cmp(x, y, out, n, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    a, b = tl.load(x + at, at < n), tl.load(y + at, at < n)
    tl.store(out + at, (a < b).to(tl.int32) + (a == b).to(tl.int32) * 2 + (a != b).to(tl.int32) * 4 + (a >= b).to(tl.int32) * 8, at < n)


@triton.jit
def fma(x, y, z, out, n, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    a, b, c = tl.load(x + at, at < n), tl.load(y + at, at < n), tl.load(z + at, at < n)
    tl.store(out + at, (tl.fma(a, b, c) - a.to(tl.float32) / b.to(tl.float32)).to(out.dtype.element_ty), at < n)


@triton.jit
def cast(x, out, n, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out + at, tl.load(x + at, at < n).to(out.dtype.element_ty), at < n)


@triton.jit
def math(x, out, n, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    a = tl.load(x + at, at < n)
    b = tl.sin(a) + tl.cos(a) + tl.log(a) + tl.exp2(a) + tl.sqrt(a) + tl.rsqrt(a) + tl.abs(a) + tl.floor(a) + tl.erf(a)
    tl.store(out + at, b, at < n)


@triton.jit
def libdev(x, out, n, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    a = tl.load(x + at, at < n)
    tl.store(out + at, libdevice.tanh(a) + libdevice.asin(a) + libdevice.pow(a, a) + libdevice.log1p(a), at < n)


@triton.jit
def dropout(x, out, n, seed, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    a = tl.load(x + at, at < n)
    tl.store(out + at, tl.where(tl.rand(seed, at) > 0.25, a / 0.75, 0.0), at < n)


@triton.jit
def atomics(x, out, n, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    a = tl.load(x + at, at < n)
    tl.atomic_max(out + at % 3, a, at < n)
    tl.atomic_min(out + 3 + at % 2, a, at < n)
    tl.atomic_xor(out + 5 + at * 0, a, at < n)
    tl.atomic_add(out + 6 + at % 2, a, at < n, sem="release", scope="cta")
    if tl.program_id(0) == 0:
        old = tl.atomic_cas(out + 9, 0, 1)
        tl.atomic_xchg(out + 10, old + 7)


@triton.jit
def sum(x, out, n, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    tl.atomic_add(out, tl.sum(tl.load(x + at, at < n, 0), 0))


@triton.jit
def sort(x, out, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out + at, tl.sort(tl.load(x + at)))


@triton.jit
def argmax(x, out, n, N: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, N)
    tl.store(out + row, tl.argmax(tl.load(x + row * n + at, at < n, float("-inf")), 0))


@triton.jit
def cumsum(x, out, n, N: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, N)
    tl.store(out + row * n + at, tl.cumsum(tl.load(x + row * n + at, at < n, 0.0), 0), at < n)


@triton.jit
def softmax(x, out, n, N: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, N)
    a = tl.load(x + row * n + at, at < n, float("-inf")).to(tl.float32)
    powers = tl.exp(a - tl.max(a, 0))
    tl.store(out + row * n + at, (powers / tl.sum(powers, 0)).to(out.dtype.element_ty), at < n)


@triton.jit
def layernorm(x, weight, out, n, epsilon, N: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, N)
    a = tl.load(x + row * n + at, at < n, 0).to(tl.float32)
    mean = tl.sum(a, 0) / n
    apart = tl.where(at < n, a - mean, 0.0)
    scale = tl.rsqrt(tl.sum(apart * apart, 0) / n + epsilon)
    tl.store(out + row * n + at, (apart * scale * tl.load(weight + at, at < n)).to(out.dtype.element_ty), at < n)


@triton.jit
def shapes(x, y, out, N: tl.constexpr):
    """Arrays put together, turned and taken apart; a histogram."""
    at = tl.arange(0, N)
    a, b = tl.load(x + at), tl.load(y + at)
    both = tl.interleave(a, b)
    turned = tl.trans(tl.reshape(both, (8, N // 4)))
    left, right = tl.split(tl.reshape(turned, (N, 2)))
    tl.store(out + at, left - right * tl.histogram(a & 15, N))


@triton.jit
def matmul(a, b, c, M, N, K, a_row, a_column, b_row, b_column, c_row, c_column, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """C = A B, and a leaky ReLU at the end. One dimension of the grid goes through all tiles, row by row."""
    columns = tl.cdiv(N, BN)
    i = tl.program_id(0) // columns * BM + tl.arange(0, BM)
    j = tl.program_id(0) % columns * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.int32 if a.dtype.element_ty == tl.int8 else tl.float32)
    for at in range(0, K, BK):
        left = tl.load(a + i[:, None] * a_row + (at + k[None, :]) * a_column, (i[:, None] < M) & (at + k[None, :] < K), 0)
        right = tl.load(b + (at + k[:, None]) * b_row + j[None, :] * b_column, (j[None, :] < N) & (at + k[:, None] < K), 0)
        total = tl.dot(left, right, total)
    if total.dtype == tl.float32:
        total = tl.where(total >= 0, total, 0.01 * total)
    tl.store(c + i[:, None] * c_row + j[None, :] * c_column, total.to(c.dtype.element_ty), (i[:, None] < M) & (j[None, :] < N))


@triton.jit
def attn(q, k, v, out, scale, n, D: tl.constexpr, B: tl.constexpr):
    """Causal attention: softmax(q k^T scale log 2) v, for B rows of q."""
    first = tl.program_id(0) * B
    i, j, d = first + tl.arange(0, B), tl.arange(0, B), tl.arange(0, D)
    query = tl.load(q + i[:, None] * D + d[None, :], i[:, None] < n, 0.0)
    most = tl.full((B,), float("-inf"), tl.float32)
    weight = tl.zeros((B,), tl.float32)
    total = tl.zeros((B, D), tl.float32)
    for at in range(0, first + B, B):
        keys = tl.load(k + (at + j[None, :]) * D + d[:, None], at + j[None, :] < n, 0.0)
        score = tl.where(i[:, None] >= at + j[None, :], tl.dot(query, keys) * scale, float("-inf"))
        greater = tl.maximum(most, tl.max(score, 1))
        power, less = tl.exp2(score - greater[:, None]), tl.exp2(most - greater)
        weight = weight * less + tl.sum(power, 1)
        values = tl.load(v + (at + j[:, None]) * D + d[None, :], at + j[:, None] < n, 0.0)
        total = tl.dot(power.to(values.dtype), values, total * less[:, None])
        most = greater
    tl.store(out + i[:, None] * D + d[None, :], (total / weight[:, None]).to(out.dtype.element_ty), i[:, None] < n)


@triton.jit
def printed(x, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.device_print("element ", tl.load(x + at))
    tl.device_assert(tl.load(x + at) >= 0, "no negative numbers")
