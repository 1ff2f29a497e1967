"""Kernels in Triton against numpy, without PyTorch: a line for each."""
import ml_dtypes
import numpy as np
import triton
import triton.language as tl
from triton_common import Array, close, random, report, uniform


@triton.jit
def add_kernel(x, y, z, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(z + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


def add(kind):
    x, y = (random.integers(-50, 50, 1000).astype(kind) for _ in range(2))
    z = Array(np.zeros(1000, kind))
    add_kernel[(triton.cdiv(1000, 256),)](Array(x), Array(y), z, 1000, BLOCK=256)
    close(z.numpy(), x + y)


@triton.jit
def softmax_kernel(x, y, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    exps = tl.exp(values - tl.max(values, 0))
    tl.store(y + row * columns + at, exps / tl.sum(exps, 0), mask=at < columns)


def softmax():
    x, y = uniform(30, 781), Array(np.zeros((30, 781), np.float32))
    softmax_kernel[(30,)](Array(x), y, 781, BLOCK=1024)
    close(y.numpy(), np.exp(x) / np.exp(x).sum(1, keepdims=True))


@triton.jit
def layer_norm_kernel(x, w, b, y, columns, epsilon, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    mask = at < columns
    values = tl.load(x + row * columns + at, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(values, 0) / columns
    apart = tl.where(mask, values - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(apart * apart, 0) / columns + epsilon)
    tl.store(y + row * columns + at, apart * scale * tl.load(w + at, mask=mask) + tl.load(b + at, mask=mask), mask=mask)


def layer_norm():
    x, w, b = uniform(17, 500), uniform(500), uniform(500)
    y = Array(np.zeros_like(x))
    layer_norm_kernel[(17,)](Array(x), Array(w), Array(b), y, 500, 1e-5, BLOCK=512)
    close(y.numpy(), (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * w + b, 1e-4)


@triton.jit
def dropout_kernel(x, y, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + at, mask=at < n)
    tl.store(y + at, tl.where(tl.rand(seed, at) > p, values / (1 - p), 0.0), mask=at < n)


def dropout():
    x, y, again = np.ones(10000, np.float32), Array(np.zeros(10000, np.float32)), Array(np.zeros(10000, np.float32))
    dropout_kernel[(40,)](Array(x), y, 10000, 0.25, 123, BLOCK=256)
    dropout_kernel[(40,)](Array(x), again, 10000, 0.25, 123, BLOCK=256)
    kept = y.numpy() != 0
    assert abs(kept.mean() - 0.75) < 0.02
    close(y.numpy()[kept], 1 / 0.75)
    np.testing.assert_array_equal(y.numpy(), again.numpy())


@triton.jit
def matmul_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, KIND: tl.constexpr):
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=KIND)
    for start in range(0, K, BK):
        left = tl.load(a + m[:, None] * K + (start + k)[None, :])
        right = tl.load(b + (start + k)[:, None] * N + n[None, :])
        total = tl.dot(left, right, total, out_dtype=KIND)
    tl.store(c + m[:, None] * N + n[None, :], total)


def matmul(kind, tolerance, low=-1, high=1, out=np.float32, blocks=(64, 64, 32), warps=4, stages=2):
    M, N, K = 128, 128, 96 if blocks[2] == 32 else 128
    a, b = random.uniform(low, high, (M, K)).astype(kind), random.uniform(low, high, (K, N)).astype(kind)
    c = Array(np.zeros((M, N), out))
    of = tl.int32 if out == np.int32 else tl.float32
    matmul_kernel[(M // blocks[0], N // blocks[1])](
        Array(a), Array(b), c, M, N, K, *blocks, KIND=of, num_warps=warps, num_stages=stages
    )
    close(c.numpy(), a.astype(np.float64) @ b.astype(np.float64), tolerance)


@triton.jit
def persistent_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    columns = tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * columns, tl.num_programs(0)):
        m, n = tile // columns * BM + tl.arange(0, BM), tile % columns * BN + tl.arange(0, BN)
        k, total = tl.arange(0, BK), tl.zeros((BM, BN), dtype=tl.float32)
        for start in range(0, K, BK):
            left = tl.load(a + m[:, None] * K + (start + k)[None, :])
            total = tl.dot(left, tl.load(b + (start + k)[:, None] * N + n[None, :]), total)
        tl.store(c + m[:, None] * N + n[None, :], total)


def persistent():
    a, b, c = uniform(128, 64, kind=np.float16), uniform(64, 160, kind=np.float16), Array(np.zeros((128, 160), np.float32))
    persistent_kernel[(3,)](Array(a), Array(b), c, 128, 160, 64, BM=32, BN=32, BK=32)
    close(c.numpy(), a.astype(np.float64) @ b.astype(np.float64), 1e-3)


@triton.jit
def attention_kernel(q, k, v, o, length, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    base = tl.program_id(1) * length * D
    m, d, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D), tl.arange(0, BN)
    query = tl.load(q + base + m[:, None] * D + d[None, :])
    most = tl.full((BM,), -float("inf"), tl.float32)
    weight, total = tl.zeros((BM,), tl.float32), tl.zeros((BM, D), tl.float32)
    for start in range(0, (tl.program_id(0) + 1) * BM, BN):
        at = start + n
        keys = tl.load(k + base + at[None, :] * D + d[:, None])
        scores = tl.dot(query, keys) * (scale * 1.44269504)
        scores = tl.where(m[:, None] >= at[None, :], scores, -1.0e6)
        new = tl.maximum(most, tl.max(scores, 1))
        p, shrink = tl.exp2(scores - new[:, None]), tl.exp2(most - new)
        weight = weight * shrink + tl.sum(p, 1)
        values = tl.load(v + base + at[:, None] * D + d[None, :])
        total = tl.dot(p.to(values.dtype), values, total * shrink[:, None])
        most = new
    tl.store(o + base + m[:, None] * D + d[None, :], total / weight[:, None])


def attention(kind):
    heads, length, depth = 2, 128, 32
    q, k, v = (uniform(heads, length, depth, kind=kind) for _ in range(3))
    o = Array(np.zeros((heads, length, depth), np.float32))
    attention_kernel[(length // 64, heads)](Array(q), Array(k), Array(v), o, length, depth**-0.5, D=depth, BM=64, BN=32)
    scores = q.astype(np.float64) @ k.astype(np.float64).swapaxes(1, 2) * depth**-0.5
    scores = np.where(np.tril(np.ones((length, length))) > 0, scores, -np.inf)
    p = np.exp(scores - scores.max(2, keepdims=True))
    close(o.numpy(), p / p.sum(2, keepdims=True) @ v.astype(np.float64), 2e-2)


@triton.jit
def compare_kernel(x, y, z, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b = tl.load(x + at, mask=at < n), tl.load(y + at, mask=at < n)
    chosen = tl.where((a < b) & (a != 0), a, tl.where(a >= b, b * 2, a + 1))
    tl.store(z + at, chosen, mask=at < n)


def compare(kind):
    x, y = (random.integers(-9, 9, 900).astype(kind) for _ in range(2))
    z = Array(np.zeros(900, kind))
    compare_kernel[(4,)](Array(x), Array(y), z, 900, BLOCK=256)
    close(z.numpy(), np.where((x < y) & (x != 0), x, np.where(x >= y, y * 2, x + 1)))


@triton.jit
def atomics_kernel(x, total, least, most, bits, count, lock, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    values = tl.load(x + at, mask=mask, other=0)
    tl.atomic_add(total + at % 4, values.to(tl.float32), mask=mask)
    # One pointer for each value, to one place.
    tl.atomic_min(least + at * 0, values, mask=mask)
    tl.atomic_max(most + at * 0, values, mask=mask)
    tl.atomic_or(bits + at * 0, 1 << (values & 15), mask=mask)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(count, tl.load(count) + tl.sum(mask.to(tl.int32), 0))
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


def atomics():
    x = random.integers(-1000, 1000, 3000).astype(np.int32)
    total, ints = Array(np.zeros(4, np.float32)), [Array(np.array([value], np.int32)) for value in (9999, -9999, 0, 0, 0)]
    atomics_kernel[(12,)](Array(x), total, *ints, 3000, BLOCK=256)
    least, most, bits, count, _ = (array.numpy()[0] for array in ints)
    close(total.numpy(), x.reshape(-1, 4).sum(0))
    assert (least, most, bits, count) == (x.min(), x.max(), np.bitwise_or.reduce(1 << (x & 15)), 3000)


@triton.jit
def scan_kernel(x, sums, sorted_, arg, counts, ROWS: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * N + tl.arange(0, N)[None, :]
    values = tl.load(x + at)
    tl.store(sums + at, tl.cumsum(values, 1))
    tl.store(sorted_ + at, tl.sort(values, 1))
    tl.store(arg + tl.arange(0, ROWS), tl.argmax(values, 1))
    tl.store(counts + tl.arange(0, 16), tl.histogram(tl.reshape(values, [ROWS * N]), 16))


def scans():
    x = random.integers(0, 16, (8, 64)).astype(np.int32)
    arrays = [Array(np.zeros(shape, np.int32)) for shape in ((8, 64), (8, 64), 8, 16)]
    scan_kernel[(1,)](Array(x), *arrays, ROWS=8, N=64)
    for array, wanted in zip(arrays, (x.cumsum(1), np.sort(x, 1), x.argmax(1), np.bincount(x.ravel(), minlength=16))):
        np.testing.assert_array_equal(array.numpy(), wanted)


@triton.jit
def math_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n, other=1.0)
    tl.store(y + at, tl.exp(v) + tl.log(v) + tl.sin(v) + tl.cos(v) + tl.sqrt(v) + tl.rsqrt(v) + tl.erf(v) + tl.floor(v * 9), mask=at < n)


def mathematics():
    from math import erf

    x, y = random.uniform(0.5, 3, 500).astype(np.float32), Array(np.zeros(500, np.float32))
    math_kernel[(1,)](Array(x), y, 500, BLOCK=512)
    d = x.astype(np.float64)
    close(y.numpy(), np.exp(d) + np.log(d) + np.sin(d) + np.cos(d) + d**0.5 + d**-0.5 + [erf(v) for v in d] + np.floor(x * 9), 1e-4)


@triton.jit
def cast_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n, other=0.0).to(y.dtype.element_ty), mask=at < n)


def cast(kind):
    x, y = uniform(500) * 8, Array(np.zeros(500, kind))
    cast_kernel[(1,)](Array(x), y, 500, BLOCK=512)
    np.testing.assert_array_equal(y.numpy().astype(np.float32), x.astype(kind).astype(np.float32))


@triton.jit
def transpose_kernel(x, y, M, N, BLOCK: tl.constexpr):
    m, n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = (m < M)[:, None] & (n < N)[None, :]
    tile = tl.load(x + m[:, None] * N + n[None, :], mask=mask)
    tl.store(y + n[:, None] * M + m[None, :], tl.trans(tile), mask=tl.trans(mask))


def transpose():
    x, y = uniform(70, 90), Array(np.zeros((90, 70), np.float32))
    transpose_kernel[(3, 3)](Array(x), y, 70, 90, BLOCK=32)
    close(y.numpy(), x.T, 0)


BF16, E4M3, E5M2 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
for kind in (np.int8, np.int16, np.int32, np.int64, np.float16, BF16, np.float32, np.float64):
    report(f"add.{np.dtype(kind)}", lambda: add(kind))
for kind in (np.int32, np.int64, np.float16, np.float32, np.float64):
    report(f"compare.{np.dtype(kind)}", lambda: compare(kind))
report("softmax", softmax)
report("layer_norm", layer_norm)
report("dropout", dropout)
report("matmul.float16", lambda: matmul(np.float16, 1e-3))
report("matmul.float16.stages", lambda: matmul(np.float16, 1e-3, stages=4))
report("matmul.float16.128", lambda: matmul(np.float16, 1e-3, blocks=(128, 128, 64), warps=8))
report("matmul.bfloat16", lambda: matmul(BF16, 1e-2))
report("matmul.float32", lambda: matmul(np.float32, 1e-1))
report("matmul.int8", lambda: matmul(np.int8, 0, -100, 100, np.int32))
report("matmul.e4m3", lambda: matmul(E4M3, 1e-1), (8, 9))
report("matmul.e5m2", lambda: matmul(E5M2, 1e-1))
report("persistent", persistent)
report("attention.float16", lambda: attention(np.float16))
report("attention.bfloat16", lambda: attention(BF16))
report("atomics", atomics)
report("scans", scans)
report("mathematics", mathematics)
for kind in (np.float16, BF16, np.float64):
    report(f"cast.{np.dtype(kind)}", lambda: cast(kind))
report("cast.e4m3", lambda: cast(E4M3), (8, 9))
report("cast.e5m2", lambda: cast(E5M2))
report("transpose", transpose)
print("done")
