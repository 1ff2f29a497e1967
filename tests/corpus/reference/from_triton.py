"""Kernels that Triton 3.4 and 3.9 compiled: 128 threads a block, dynamic shared memory, scratch pointers at the end."""

import numpy as np
from common import Bf16, canonical, case, divide, narrow, product, signed, widen

# The scratch parameters of the two releases; no kernel here uses them.
SCRATCH34 = [0]
SCRATCH39 = [0, 0]


def cases():
    rng = np.random.default_rng(600)
    elementwise(rng)
    casts(rng)
    reductions(rng)
    matmul(np.random.default_rng(601))
    siblings(np.random.default_rng(602))
    attention()


def elementwise(rng):
    bits = rng.integers(0, 2**16, (2, 1500)).astype(np.uint16)
    bits[:, :3] = [[0x7C00, 0x7E01, 0x7BFF], [0xFC00, 0x3C00, 0x7BFF]]
    x, y = bits.view(np.float16)
    with np.errstate(invalid="ignore", over="ignore"):
        total = canonical(x + y)
        clamped = np.where(x > y, np.clip(x, np.float16(-1), np.float16(1)), y)
    case("triton39/add_f16_sm80.ptx", 2, 128, [x, y, "f16[1500]", 1500] + SCRATCH39, {2: total})
    case("triton34/add_f16_sm80.ptx", 2, 128, [x, y, "f16[1500]", 1500] + SCRATCH34, {2: total})
    args = [x, y, "f16[1500]", 1500] + SCRATCH39
    case("triton39/clampwhere_f16_sm80.ptx", 2, 128, args, {2: clamped})

    x, y = rng.standard_normal((2, 1030)).astype(np.float32) * 2
    y[:4], x[2:6] = [np.nan, -0.0, -1, np.inf], [np.inf, -np.inf, np.nan, -0.0]
    out = np.where(x > y, np.clip(x, np.float32(-1), np.float32(1)), y)
    args = [x, y, "f32[1030]", 1030] + SCRATCH34
    case("triton34/clampwhere_f32_sm90.ptx", 2, 128, args, {2: out})

    a, b = rng.integers(-(2**31), 2**31, (2, 300))
    b[::2] = rng.integers(1, 50, 150)
    b[1::20] = -3
    b[b == 0] = 9
    out = np.array([integers(int(x), int(y)) for x, y in zip(a, b, strict=True)], np.int32)
    args = [a.astype(np.int32), b.astype(np.int32), "i32[300]", 300]
    case("triton39/int_i32_sm80.ptx", 2, 128, args + SCRATCH39, {2: out})
    case("triton34/int_i32_sm80.ptx", 2, 128, args + SCRATCH34, {2: out})

    a, b = rng.integers(-5, 6, (2, 300)).astype(np.int32)
    out = ((a < b) * 1 + (a == b) * 2 + (a != b) * 4 + (a >= b) * 8).astype(np.int32)
    case("triton39/cmp_i32_sm100.ptx", 2, 128, [a, b, "i32[300]", 300] + SCRATCH39, {2: out})

    # bf16 fma, minus a quotient in f32 by powers of two, which is exact however it is approximated
    values = rng.standard_normal((2, 600)).astype(np.float32).astype(np.float64)
    a, c = (narrow(v) for v in values)
    b = narrow(2.0 ** rng.integers(-4, 5, 600) * rng.choice([-1.0, 1.0], 600))
    wa, wb, wc = (widen(v).astype(np.float64) for v in (a, b, c))
    fused = widen(narrow(wa * wb + wc))
    out = narrow(fused - (wa / wb).astype(np.float32))
    args = [Bf16(a), Bf16(b), Bf16(c), "bf16[600]", 600] + SCRATCH39
    case("triton39/fma_bf16_sm80.ptx", 2, 128, args, {3: out})


def integers(a, b):
    """One element of the kernel `int_kernel`."""
    quotient = divide(a, b)
    high = (a % 2**32) * (b % 2**32) >> 32
    return signed((a << 3) + (a >> 2) + (a ^ b) + (a & b) + min(a, b) + quotient + (a - quotient * b) + high, 32)


def casts(rng):
    x = rng.integers(0, 2**32, 500, dtype=np.uint32).view(np.float32)
    x[:4] = [1.00390625, 1.01171875, 3.4e38, 1e-40]
    args = [x, "bf16[500]", 500] + SCRATCH34
    case("triton34/cast_f32_bf16_sm80.ptx", 2, 128, args, {1: narrow(x)})

    x = (rng.standard_normal(500) * 1e9).astype(np.float32)
    x[:7] = [np.nan, np.inf, -np.inf, 2.0**31, -(2.0**31), -0.9, 1.9]
    whole = [0 if np.isnan(v) else int(min(max(v, -(2.0**31)), 2.0**31 - 1)) for v in x.astype(np.float64)]
    args = [x, "i32[500]", 500] + SCRATCH39
    case("triton39/cast_f32_i32_sm100.ptx", 2, 128, args, {1: np.array(whole, np.int32)})


def reductions(rng):
    x = rng.integers(-(2**31), 2**31, 2500).astype(np.int32)
    total = np.array([signed(int(x.astype(np.int64).sum()), 32)], np.int32)
    args = [x, "i32[1]", 2500] + SCRATCH39
    case("triton39/sum_i32_sm80.ptx", 3, 128, args, {1: total}, shared=16)

    # floats that are integers: the order of the blocks does not matter
    x = rng.integers(-100, 100, 2500).astype(np.float32)
    args = [x, "f32[1]", 2500] + SCRATCH34
    case("triton34/sum_f32_sm90.ptx", 3, 128, args, {1: x.sum(keepdims=True)}, shared=16)

    # bitonic sort of 128 floats, by shuffles and, across warps, through shared memory
    x = rng.standard_normal(128).astype(np.float32)
    x[:4] = [np.inf, -np.inf, 3e38, 1e-45]
    case("triton39/sort_f32_sm80.ptx", 1, 128, [x, "f32[128]"] + SCRATCH39, {1: np.sort(x)}, shared=512)

    # the index of the greatest element of each row, the first one of equals
    x = rng.integers(-300, 300, (3, 700)).astype(np.float32)
    x[1, [650, 30, 158]] = 1000
    args = [x, "i32[3]", 700] + SCRATCH34
    case("triton34/argmax_f32_sm80.ptx", 3, 128, args, {1: x.argmax(axis=1).astype(np.int32)}, shared=32)

    # prefix sums of rows: within each warp by doubling, then warp after warp
    x = rng.standard_normal((3, 300)).astype(np.float32)
    scan = np.zeros((3, 512), np.float32)
    scan[:, :300] = x
    scan = scan.reshape(3, 16, 32)
    for distance in (1, 2, 4, 8, 16):
        moved = scan.copy()
        moved[:, :, distance:] += scan[:, :, :-distance]
        scan = moved
    out = scan.copy()
    before = scan[:, 0, 31]
    for warp in range(1, 16):
        out[:, warp] = scan[:, warp] + before[:, None]
        before = before + scan[:, warp, 31]
    args = [x, "f32[3x300]", 300] + SCRATCH39
    case("triton39/cumsum_f32_sm80.ptx", 3, 128, args, {1: out.reshape(3, 512)[:, :300]}, shared=64)


def matmul(rng):
    # tiles of 64 x 64 x 32: none of the sizes is a multiple
    m, n, k = 100, 72, 88
    a = rng.standard_normal((m, k)).astype(np.float16)
    b = rng.standard_normal((k, n)).astype(np.float16)
    args = [a, b, f"f16[{m}x{n}]", m, n, k, k, 1, n, 1, n, 1] + SCRATCH39
    note = "sums in ascending k, each rounded to f32, as ptxvm documents; a GPU may differ in the last bits"
    total = product(a, b)
    # a leaky ReLU at the end
    out = np.where(total >= 0, total, np.float32(0.01) * total).astype(np.float16)
    case("triton39/matmul_f16_sm80.ptx", 4, 128, args, {2: out}, shared=16384, note=note)
    # the same in tensor memory
    case("triton39/matmul_f16_sm100.ptx", 4, 128, args, {2: out}, shared=16400, note=note)


def attention():
    """Causal attention, softmax(q k^T scale log 2) v, by wgmma. The rows of q are eight times one key each; keys are rows of a Hadamard
    matrix, so that all other scores are 128 or more below and count for nothing. Keys 64 apart are the same or negated: where both may be
    seen and are the same, the result is the mean of two rows of v."""
    rng = np.random.default_rng(64)
    hadamard = np.array([[1]])
    for _ in range(6):
        hadamard = np.block([[hadamard, hadamard], [hadamard, -hadamard]])
    count = 192
    signs = rng.choice([-1, 1], (count, 1))
    k = np.tile(hadamard, (3, 1)) * signs
    v = rng.integers(-30, 31, (count, 64)) * 2
    q, out = np.zeros((2, count, 64))
    for i in range(count):
        same = [[j for j in range(i + 1) if (k[j] == key).all()] for key in k[: i + 1]]
        # The mean of three would not be exact.
        seen = same[rng.choice([j for j in range(i + 1) if len(same[j]) < 3])]
        q[i], out[i] = 8 * k[seen[0]], v[seen].mean(axis=0)
    halves = [x.astype(np.float16) for x in (q, k, v)]
    for file, scratch in (("triton34", SCRATCH34), ("triton39", SCRATCH39)):
        args = [*halves, f"f16[{count}x64]", 0.25, count] + scratch
        case(f"{file}/attn_f16_sm90.ptx", count // 64, 128, args, {3: out.astype(np.float16)}, shared=65536)


def siblings(rng):
    """The same sources for other types and targets."""

    def both(name, blocks, args, outputs, shared=0):
        folder = name.split("/")[0]
        scratch = SCRATCH34 if folder == "triton34" else SCRATCH39
        case(f"{name}.ptx", blocks, 128, args + scratch, outputs, shared=shared)

    # max(x, 0); of -0.0 and NaN too, which give +0.0
    half = rng.integers(0, 2**16, 1500).astype(np.uint16).view(np.float16)
    single = rng.integers(0, 2**32, 1500, dtype=np.uint32).view(np.float32)
    single[:3] = [-0.0, np.nan, np.inf]
    for name in ("triton39/relu_f16_sm100", "triton39/relu_f16_sm80"):
        both(name, 2, [half, "f16[1500]", 1500], {1: np.where(half > 0, half, np.float16(0))})
    for name in ("triton39/relu_f32_sm100", "triton34/relu_f32_sm90"):
        both(name, 2, [single, "f32[1500]", 1500], {1: np.where(single > 0, single, np.float32(0))})
    brain = narrow(rng.standard_normal(1500).astype(np.float32))
    out = np.where(widen(brain) > 0, brain, 0).astype(np.uint16)
    both("triton39/relu_bf16_sm100", 2, [Bf16(brain), "bf16[1500]", 1500], {1: out})

    x, y = rng.standard_normal((2, 1100)).astype(np.float32)
    both("triton34/add_f32_sm90", 2, [x, y, "f32[1100]", 1100], {2: x + y})
    bx, by = narrow(x), narrow(y)
    out = narrow(widen(bx) + widen(by))
    both("triton39/add_bf16_sm100", 2, [Bf16(bx), Bf16(by), "bf16[1100]", 1100], {2: out})
    hx, hy = x.astype(np.float16), y.astype(np.float16)
    out = np.where(hx > hy, np.clip(hx, np.float16(-1), np.float16(1)), hy)
    both("triton34/clampwhere_f16_sm80", 2, [hx, hy, "f16[1100]", 1100], {2: out})
    wx, wy = widen(bx), widen(by)
    out = narrow(np.where(wx > wy, np.clip(wx, np.float32(-1), np.float32(1)), wy))
    both("triton39/clampwhere_bf16_sm100", 2, [Bf16(bx), Bf16(by), "bf16[1100]", 1100], {2: out})

    a, b = rng.integers(-(2**31), 2**31, (2, 300))
    b[::2] = rng.integers(1, 50, 150)
    b[b == 0] = 9
    out = np.array([integers(int(p), int(q)) for p, q in zip(a, b, strict=True)], np.int32)
    for name in ("triton34/int_i32_sm90", "triton39/int_i32_sm100"):
        both(name, 2, [a.astype(np.int32), b.astype(np.int32), "i32[300]", 300], {2: out})

    for name, dtype in (("cmp_i32_sm80", np.int32), ("cmp_f32_sm80", np.float32), ("cmp_f64_sm100", np.float64)):
        a, b = rng.integers(-5, 6, (2, 300)).astype(dtype)
        if dtype != np.int32:
            a[5], b[9] = np.nan, np.nan
        out = ((a < b) * 1 + (a == b) * 2 + (a != b) * 4 + (a >= b) * 8).astype(np.int32)
        both(f"triton39/{name}", 2, [a, b, "i32[300]", 300], {2: out})

    x = (rng.standard_normal(500) * 100).astype(np.float32)
    x[:3] = [65519, 65520, 1e-7]
    with np.errstate(over="ignore"):
        h = x.astype(np.float16)
    for name in ("triton34/cast_f32_f16_sm90", "triton39/cast_f32_f16_sm100"):
        both(name, 2, [x, "f16[500]", 500], {1: h})
    for name in ("triton34/cast_f32_bf16_sm90", "triton39/cast_f32_bf16_sm80"):
        both(name, 2, [x, "bf16[500]", 500], {1: narrow(x)})
    for name in ("triton39/cast_f16_f32_sm100", "triton39/cast_f16_f32_sm80"):
        both(name, 2, [h, "f32[500]", 500], {1: h.astype(np.float32)})
    both("triton34/cast_bf16_f32_sm90", 2, [Bf16(narrow(x)), "f32[500]", 500], {1: widen(narrow(x))})
    small = rng.integers(-128, 128, 500).astype(np.float16) * np.float16(0.75)
    for name in ("triton34/cast_f16_i8_sm80", "triton34/cast_f16_i8_sm90", "triton39/cast_f16_i8_sm100", "triton39/cast_f16_i8_sm80"):
        both(name, 2, [small, "i8[500]", 500], {1: np.trunc(small).astype(np.int8)})
    i = rng.integers(-(2**31), 2**31, 500)
    both("triton39/cast_i32_f32_sm100", 2, [i.astype(np.int32), "f32[500]", 500], {1: i.astype(np.float32)})
    i = rng.integers(-(2**62), 2**62, 500)
    both("triton34/cast_i64_f64_sm90", 2, [i, "f64[500]", 500], {1: i.astype(np.float64)})
    d = rng.standard_normal(500) * 1e10
    both("triton39/cast_f64_f32_sm100", 2, [d, "f32[500]", 500], {1: d.astype(np.float32)})

    # sums of integers in whatever type: the order does not matter
    x = rng.integers(-(2**31), 2**31, 2500).astype(np.int32)
    total = np.array([signed(int(x.astype(np.int64).sum()), 32)], np.int32)
    for name in ("triton34/sum_i32_sm80", "triton39/sum_i32_sm100"):
        both(name, 3, [x, "i32[1]", 2500], {1: total}, shared=1024)
    x = rng.integers(-100, 100, 2500).astype(np.float32)
    for name in ("triton39/sum_f32_sm100", "triton39/sum_f32_sm80", "triton39/sum_f32_sm90"):
        both(name, 3, [x, "f32[1]", 2500], {1: x.sum(keepdims=True)}, shared=1024)

    x = rng.standard_normal(128).astype(np.float32)
    for name in ("triton34/sort_f32_sm80", "triton39/sort_f32_sm100"):
        both(name, 1, [x, "f32[128]"], {1: np.sort(x)}, shared=1024)
    x = rng.integers(-300, 300, (3, 700)).astype(np.float32)
    x[1, [650, 30, 158]] = 1000
    for name in ("triton34/argmax_f32_sm90", "triton39/argmax_f32_sm80"):
        both(name, 3, [x, "i32[3]", 700], {1: x.argmax(axis=1).astype(np.int32)}, shared=1024)
    h = x.astype(np.float16)
    both("triton39/argmax_f16_sm100", 3, [h, "i32[3]", 700], {1: h.argmax(axis=1).astype(np.int32)}, shared=1024)
