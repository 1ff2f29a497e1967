"""Kernels in Triton, which build.py compiles for sm_90 and sm_100."""

import triton
import triton.language as tl


@triton.jit
def made(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """A product of matrices, with descriptors of all three that the kernel makes."""
    left = tl.make_tensor_descriptor(a, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    right = tl.make_tensor_descriptor(b, shape=[K, N], strides=[N, 1], block_shape=[BK, BN])
    out = tl.make_tensor_descriptor(c, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(left.load([m, k]), right.load([k, n]), total)
    out.store([m, n], total)


@triton.jit
def persistent(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPECIALISED: tl.constexpr):
    """a times b transposed, tile after tile in few blocks; some warps load, others multiply, and others store."""
    columns = tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * columns, tl.num_programs(0), flatten=True, warp_specialize=SPECIALISED):
        m, n = tile // columns * BM, tile % columns * BN
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, tl.cdiv(K, BK)):
            total = tl.dot(a.load([m, k * BK]), b.load([n, k * BK]).T, total)
        rows, at = m + tl.arange(0, BM), n + tl.arange(0, BN)
        mask = (rows < M)[:, None] & (at < N)[None, :]
        tl.store(c + rows[:, None] * N + at[None, :], total.to(tl.float16), mask=mask)


@triton.jit
def attention(q, k, v, o, length, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, SPECIALISED: tl.constexpr):
    """softmax(q k^T scale) v, the keys and values block by block."""
    m, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    query = q.load([tl.program_id(0) * BM, 0])
    most = tl.full((BM,), -float("inf"), tl.float32)
    weight, total = tl.zeros((BM,), tl.float32), tl.zeros((BM, D), tl.float32)
    for start in tl.range(0, length, BN, warp_specialize=SPECIALISED):
        scores = tl.dot(query, k.load([start, 0]).T) * (scale * 1.44269504)
        new = tl.maximum(most, tl.max(scores, 1))
        p, shrink = tl.exp2(scores - new[:, None]), tl.exp2(most - new)
        weight = weight * shrink + tl.sum(p, 1)
        total = tl.dot(p.to(tl.float16), v.load([start, 0]), total * shrink[:, None])
        most = new
    tl.store(o + m[:, None] * D + d[None, :], (total / weight[:, None]).to(tl.float16))


@triton.jit
def scaled(
    a, a_scale, b, b_scale, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, A: tl.constexpr, B: tl.constexpr, PER: tl.constexpr
):
    """a times b transposed, of 4 or 8 bits an element, with a scale for so many of them each."""
    m, n, s = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K // PER)
    WA: tl.constexpr = K // 2 if A == "e2m1" else K
    WB: tl.constexpr = K // 2 if B == "e2m1" else K
    left = tl.load(a + m[:, None] * WA + tl.arange(0, WA)[None, :])
    right = tl.load(b + n[None, :] * WB + tl.arange(0, WB)[:, None])
    left_scale = tl.load(a_scale + m[:, None] * (K // PER) + s[None, :])
    right_scale = tl.load(b_scale + n[:, None] * (K // PER) + s[None, :])
    if PER == 16:
        left_scale, right_scale = left_scale.to(tl.float8e4nv, bitcast=True), right_scale.to(tl.float8e4nv, bitcast=True)
    total = tl.dot_scaled(left, left_scale, A, right, right_scale, B)
    tl.store(c + m[:, None] * N + n[None, :], total)
