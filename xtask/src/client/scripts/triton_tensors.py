"""Kernels in Triton that take tensors by descriptors, multiply scaled blocks and specialise warps, against numpy: a line for each.

Factors are small integers, or powers of two, so that every sum is exact whatever its order: what comes out must be equal bit by bit.
"""
import ml_dtypes
import numpy as np
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor
from triton_common import CAPABILITY, Array, close, random, report

F16, BF16, E4M3, E5M2 = np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
KEPT = []


def scratch(size, align, stream):
    """Memory for the descriptors that kernels make."""
    KEPT.append(Array(np.zeros(size + align, np.uint8)))
    address = KEPT[-1].data_ptr()
    return type("Scratch", (), {"data_ptr": lambda self: -(-address // align) * align})()


triton.set_allocator(scratch)


def describe(array, *block):
    strides = [int(np.prod(array.shape[d + 1 :])) for d in range(len(array.shape))]
    return TensorDescriptor(array, list(array.shape), strides, list(block))


def integers(*shape, kind=F16, most=4):
    return random.integers(-most, most + 1, shape).astype(kind)


def zeros(*shape, kind=np.float32):
    return Array(np.zeros(shape, kind))


def equal(got, wanted):
    np.testing.assert_array_equal(np.asarray(got, np.float64), np.asarray(wanted, np.float64))


def exact(a, b):
    return a.astype(np.float64) @ b.astype(np.float64)


@triton.jit
def copy_kernel(x, y, M: tl.constexpr, N: tl.constexpr):
    at = [tl.program_id(0) * M, tl.program_id(1) * N]
    y.store(at, x.load(at) + 1)


def copy(kind, block, shape=(70, 96)):
    x, y = integers(*shape, kind=kind), zeros(*shape, kind=kind)
    copy_kernel[(triton.cdiv(shape[0], block[0]), triton.cdiv(shape[1], block[1]))](
        describe(Array(x), *block), describe(y, *block), *block
    )
    equal(y.numpy(), x + np.ones(1, kind))


@triton.jit
def copy_3d_kernel(x, y, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    at = [tl.program_id(0) * B, tl.program_id(1) * M, 0]
    y.store(at, x.load(at) * 2)


def copy_3d():
    x, y = integers(5, 20, 32), zeros(5, 20, 32, kind=F16)
    copy_3d_kernel[(3, 2)](describe(Array(x), 2, 16, 32), describe(y, 2, 16, 32), 2, 16, 32)
    equal(y.numpy(), x * 2)


@triton.jit
def add_kernel(x, y, M: tl.constexpr, N: tl.constexpr):
    y.atomic_add([0, tl.program_id(0) % 2 * N], x.load([tl.program_id(0) * M, 0]))


def reduction(kind):
    x, y = integers(64, 32, kind=kind), integers(16, 64, kind=kind)
    to = Array(y)
    add_kernel[(4,)](describe(Array(x), 16, 32), describe(to, 16, 32), 16, 32)
    tiles = x.astype(np.float32).reshape(4, 16, 32)
    equal(to.numpy(), y.astype(np.float32) + np.concatenate([tiles[0] + tiles[2], tiles[1] + tiles[3]], 1))


@triton.jit
def gather_kernel(x, rows, y, z, COUNT: tl.constexpr, N: tl.constexpr):
    at = tl.load(rows + tl.arange(0, COUNT))
    tile = x.gather(at, tl.program_id(0) * N)
    tl.store(y + tl.arange(0, COUNT)[:, None] * (2 * N) + tl.program_id(0) * N + tl.arange(0, N)[None, :], tile)
    z.scatter(tile, at, tl.program_id(0) * N)


def gather():
    x, rows = integers(50, 128), random.permutation(60)[:32].astype(np.int32)
    y, z = zeros(32, 128, kind=F16), zeros(50, 128, kind=F16)
    gather_kernel[(2,)](describe(Array(x), 1, 64), Array(rows), y, describe(z, 1, 64), 32, 64)
    wanted, back = np.zeros((32, 128), F16), np.zeros((50, 128), F16)
    inside = rows < 50
    wanted[inside], back[rows[inside]] = x[rows[inside]], x[rows[inside]]
    equal(y.numpy(), wanted)
    equal(z.numpy(), back)


@triton.jit
def matmul_kernel(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, TRANSPOSED: tl.constexpr):
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        if TRANSPOSED:
            total = tl.dot(a.load([m, k]), b.load([n, k]).T, total)
        else:
            total = tl.dot(a.load([m, k]), b.load([k, n]), total)
    c.store([m, n], total.to(c.dtype))


def matmul(kind, blocks=(128, 64, 64), transposed=False, warps=4, stages=3, sizes=(200, 136, 160), out=np.float32):
    (M, N, K), (BM, BN, BK) = sizes, blocks
    a, b, c = integers(M, K, kind=kind), integers(K, N, kind=kind), zeros(M, N, kind=out)
    right = describe(Array(b.T), BN, BK) if transposed else describe(Array(b), BK, BN)
    matmul_kernel[(triton.cdiv(M, BM), triton.cdiv(N, BN))](
        describe(Array(a), BM, BK), right, describe(c, BM, BN), K, BM, BN, BK, transposed, num_warps=warps, num_stages=stages
    )
    equal(c.numpy(), exact(a, b).astype(out))


@triton.jit
def made_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    a = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    b = tl.make_tensor_descriptor(b_ptr, shape=[K, N], strides=[N, 1], block_shape=[BK, BN])
    c = tl.make_tensor_descriptor(c_ptr, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(a.load([m, k]), b.load([k, n]), total)
    c.store([m, n], total)


def made():
    M, N, K = 100, 72, 96
    a, b, c = integers(M, K), integers(K, N), zeros(M, N)
    made_kernel[(2, 2)](Array(a), Array(b), c, M, N, K, BM=64, BN=64, BK=32)
    equal(c.numpy(), exact(a, b))


@triton.jit
def persistent_kernel(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPECIALISED: tl.constexpr, FLAT: tl.constexpr
):
    columns = tl.cdiv(N, BN)
    for tile in tl.range(
        tl.program_id(0), tl.cdiv(M, BM) * columns, tl.num_programs(0), flatten=FLAT, warp_specialize=SPECIALISED
    ):
        m, n = tile // columns * BM, tile % columns * BN
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, tl.cdiv(K, BK)):
            total = tl.dot(a.load([m, k * BK]), b.load([n, k * BK]).T, total)
        c.store([m, n], total.to(c.dtype))


def persistent(specialised=False, flat=True, kind=F16):
    M, N, K, BM, BN, BK = 300, 260, 192, 128, 128, 64
    a, b, c = integers(M, K, kind=kind), integers(N, K, kind=kind), zeros(M, N + 4)
    persistent_kernel[(2,)](
        describe(Array(a), BM, BK), describe(Array(b), BN, BK), describe(c, BM, BN), M, N, K, BM, BN, BK, specialised, flat,
        num_warps=4 if specialised else 8, num_stages=3,
    )
    equal(c.numpy()[:, :N], exact(a, b.T))
    equal(c.numpy()[:, N:], 0)


@triton.jit
def attention_kernel(
    q, k, v, o, length, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr, SPECIALISED: tl.constexpr
):
    base = tl.program_id(1) * length
    first = tl.program_id(0) * BM
    m, n = first + tl.arange(0, BM), tl.arange(0, BN)
    query = q.load([base + first, 0])
    most = tl.full((BM,), -float("inf"), tl.float32)
    weight, total = tl.zeros((BM,), tl.float32), tl.zeros((BM, D), tl.float32)
    end = first + BM if CAUSAL else length
    for start in tl.range(0, end, BN, warp_specialize=SPECIALISED):
        scores = tl.dot(query, k.load([base + start, 0]).T) * (scale * 1.44269504)
        if CAUSAL:
            scores = tl.where(m[:, None] >= (start + n)[None, :], scores, -1.0e6)
        new = tl.maximum(most, tl.max(scores, 1))
        p, shrink = tl.exp2(scores - new[:, None]), tl.exp2(most - new)
        weight = weight * shrink + tl.sum(p, 1)
        total = total * shrink[:, None]
        total = tl.dot(p.to(v.dtype), v.load([base + start, 0]), total)
        most = new
    o.store([base + first, 0], (total / weight[:, None]).to(o.dtype))


def attention(kind, causal, depth=64, specialised=False, warps=4):
    heads, length, BM, BN = 2, 256, 128, 64
    q, k, v = (random.uniform(-1, 1, (heads * length, depth)).astype(kind) for _ in range(3))
    o = zeros(heads * length, depth)
    attention_kernel[(length // BM, heads)](
        *(describe(Array(x), rows, depth) for x, rows in ((q, BM), (k, BN), (v, BN))), describe(o, BM, depth),
        length, depth**-0.5, depth, BM, BN, causal, specialised, num_warps=warps, num_stages=2,
    )
    q, k, v = (x.astype(np.float64).reshape(heads, length, depth) for x in (q, k, v))
    scores = q @ k.swapaxes(1, 2) * depth**-0.5
    if causal:
        scores = np.where(np.tril(np.ones((length, length))) > 0, scores, -np.inf)
    p = np.exp(scores - scores.max(2, keepdims=True))
    wanted = p / p.sum(2, keepdims=True) @ v
    # The weights are rounded to the type of the values: of each at most half a unit in the last place, and so of their mean.
    bound = {F16: 2.0**-11, BF16: 2.0**-8, E5M2: 2.0**-3}[kind] * 1.25
    assert abs(o.numpy().reshape(wanted.shape) - wanted).max() < bound


@triton.jit
def scaled_kernel(
    a, a_scale, b, b_scale, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, BK: tl.constexpr,
    A: tl.constexpr, B: tl.constexpr, PER: tl.constexpr, A_PACK: tl.constexpr, B_PACK: tl.constexpr,
):
    m, n = tl.arange(0, M), tl.arange(0, N)
    ka, kb, ks = tl.arange(0, BK // A_PACK), tl.arange(0, BK // B_PACK), tl.arange(0, BK // PER)
    total = tl.zeros((M, N), dtype=tl.float32)
    for k in range(0, K, BK):
        left = tl.load(a + m[:, None] * (K // A_PACK) + k // A_PACK + ka[None, :])
        right = tl.load(b + n[None, :] * (K // B_PACK) + k // B_PACK + kb[:, None])
        left_scale = tl.load(a_scale + m[:, None] * (K // PER) + k // PER + ks[None, :])
        right_scale = tl.load(b_scale + n[:, None] * (K // PER) + k // PER + ks[None, :])
        total = tl.dot_scaled(left, left_scale, A, right, right_scale, B, total)
    tl.store(c + m[:, None] * N + n[None, :], total)


E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6] + [-0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def scaled(left, right, nv=False, blocks=128):
    M, N, K, per = 128, 128, 256, 16 if nv else 32

    def factor(rows, form):
        if form == "e2m1":
            codes = random.integers(0, 16, (rows, K))
            return E2M1[codes], (codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8), 2
        # Few bits of fraction, so that sums are exact.
        values = random.choice([-2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2], (rows, K))
        return values, values.astype({"e4m3": E4M3, "e5m2": E5M2}[form]), 1

    def scales(rows):
        if nv:
            values = random.choice([0.5, 1, 1.5, 2], (rows, K // per))
            return values, values.astype(E4M3)
        powers = random.integers(-2, 3, (rows, K // per))
        return 2.0**powers, (powers + 127).astype(np.uint8)

    (a, a_bits, a_pack), (b, b_bits, b_pack) = factor(M, left), factor(N, right)
    (sa, sa_bits), (sb, sb_bits) = scales(M), scales(N)
    c = zeros(M, N)
    scaled_kernel[(1,)](
        *(Array(x) for x in (a_bits, sa_bits, b_bits, sb_bits)), c, M, N, K, blocks, left, right, per, a_pack, b_pack
    )
    equal(c.numpy(), (a * sa.repeat(per, 1)) @ (b * sb.repeat(per, 1)).T)


HOPPER, BLACKWELL = (9, 0), (10, 0)
for kind, block in ((np.uint8, (16, 32)), (np.int32, (8, 32)), (F16, (32, 64)), (BF16, (32, 16)), (np.float32, (16, 64)), (np.float64, (8, 16))):
    report(f"copy.{np.dtype(kind)}", lambda: copy(kind, block), HOPPER)
report("copy.3d", copy_3d, HOPPER)
for kind in (np.int32, np.float32, F16, BF16):
    report(f"reduction.{np.dtype(kind)}", lambda: reduction(kind), HOPPER)
report("gather", gather, BLACKWELL)
report("matmul.float16", lambda: matmul(F16), HOPPER)
report("matmul.float16.transposed", lambda: matmul(F16, transposed=True), HOPPER)
report("matmul.float16.wide", lambda: matmul(F16, (128, 256, 64), warps=8, sizes=(256, 512, 128)), HOPPER)
report("matmul.float16.narrow", lambda: matmul(F16, (64, 32, 32), out=F16), HOPPER)
report("matmul.bfloat16", lambda: matmul(BF16, (128, 128, 64), stages=4), HOPPER)
report("matmul.float32", lambda: matmul(np.float32, (64, 64, 32), transposed=True), HOPPER)
report("matmul.e4m3", lambda: matmul(E4M3, (128, 64, 64), transposed=True), HOPPER)
report("matmul.e5m2", lambda: matmul(E5M2, (128, 64, 128), transposed=True), HOPPER)
report("matmul.made", made, HOPPER)
report("persistent", persistent, HOPPER)
report("persistent.nested", lambda: persistent(flat=False), HOPPER)
report("persistent.specialised", lambda: persistent(True), BLACKWELL)
report("persistent.specialised.nested", lambda: persistent(True, False), BLACKWELL)
report("persistent.specialised.e5m2", lambda: persistent(True, kind=E5M2), BLACKWELL)
for kind in (F16, BF16):
    for causal in (False, True):
        report(f"attention.{np.dtype(kind)}.{'causal' if causal else 'full'}", lambda: attention(kind, causal), HOPPER)
report("attention.float16.128", lambda: attention(F16, True, 128, warps=8), HOPPER)
report("attention.specialised", lambda: attention(F16, False, specialised=True), BLACKWELL)
report("attention.specialised.causal", lambda: attention(F16, True, specialised=True), BLACKWELL)
report("attention.specialised.128", lambda: attention(F16, False, 128, specialised=True), BLACKWELL)
for left, right in (("e4m3", "e4m3"), ("e5m2", "e5m2"), ("e4m3", "e5m2"), ("e2m1", "e2m1"), ("e4m3", "e2m1"), ("e2m1", "e5m2")):
    report(f"scaled.{left}.{right}", lambda: scaled(left, right), HOPPER)
report("scaled.nvfp4", lambda: scaled("e2m1", "e2m1", nv=True), BLACKWELL)
report("scaled.nvfp4.64", lambda: scaled("e2m1", "e2m1", nv=True, blocks=64), BLACKWELL)
print("done")
