"""Kernels that nvcc 13.5 and NVRTC 12.9 compiled."""

import numpy as np
from common import Bf16, case, divide, fma, product, signed, widen
from from_numba import collatz


def cases():
    rng = np.random.default_rng(200)
    integers(rng)

    tensor_cores(np.random.default_rng(201))

    start = np.concatenate([rng.integers(1, 2**40, 509), [1, 2, 27]])
    steps = np.array([collatz(int(s), 10000) for s in start], np.int32)
    case("nvcc13/integer_sm80.ptx", 2, 256, [start, "i32[512]"], {1: steps}, entry="collatz")

    # a switch; case 5 reads the next element
    choice = rng.integers(-2, 10, 101).astype(np.int32)
    tid = np.arange(100)
    table = {0: 5, 1: 3, 2: 17, 3: tid, 4: -5, 5: choice[1:], 6: 77, 7: -tid}
    out = np.full(100, -1)
    for value, result in table.items():
        out = np.where(choice[:100] == value, result, out)
    case("nvcc13/integer_sm80.ptx", 1, 100, [choice, "i32[100]"], {1: out.astype(np.int32)}, entry="sw")

    # Mandelbrot set, one byte a pixel
    width, height, limit = 45, 37, 100
    x0, y0, dx, dy = (np.float32(v) for v in (-2.2, -1.2, 0.07, 0.065))
    re = np.broadcast_to(fma(np.arange(width).astype(np.float32), dx, x0), (height, width))
    im = np.broadcast_to(fma(np.arange(height).astype(np.float32), dy, y0)[:, None], (height, width))
    x, y, xx, yy = (np.zeros((height, width), np.float32) for _ in range(4))
    count = np.zeros((height, width), int)
    running = np.ones((height, width), bool)
    for _ in range(limit):
        x_next, y_next = re + (xx - yy), fma(x + x, y, im)
        x, y = np.where(running, x_next, x), np.where(running, y_next, y)
        count += running
        xx, yy = x * x, y * y
        running &= xx + yy < np.float32(4)
    args = [f"u8[{height}x{width}]", width, height, "-2.2", "-1.2", "0.07", "0.065", limit]
    case("nvcc13/mandel_sm80.ptx", (3, 3), (16, 16), args, {0: count.astype(np.uint8)})

    data = rng.integers(0, 256, 5003).astype(np.uint8)
    bins = np.bincount(data, minlength=256).astype(np.uint32)
    case("nvcc13/atomics_sm80.ptx", 3, 256, [data, "u32[256]", 5003], {1: bins}, entry="histogram")

    n = 40
    a, b = rng.integers(-(2**31), 2**31, (2, n, n)).astype(np.int32)
    args = [a, b, f"i32[{n}x{n}]", n]
    case("nvcc13/matmul_sm80.ptx", (3, 3), (16, 16), args, {2: a @ b}, entry="matmul_i")
    a, b = rng.standard_normal((2, n, n)).astype(np.float32)
    c = np.zeros((n, n), np.float32)
    for i in range(n):
        c = fma(a[:, i : i + 1], b[i : i + 1, :], c)
    args = [a, b, f"f32[{n}x{n}]", n]
    case("nvcc13/matmul_sm80.ptx", (3, 3), (16, 16), args, {2: c}, entry="matmul_f")
    case("nvrtc12/matmul_sm53.ptx", (3, 3), (16, 16), args, {2: c}, entry="matmul_f")

    half_compare(rng)
    half2_compare(rng)
    bf16_compare(rng)
    ternary(rng)

    a, b = rng.integers(-100, 100, (2, 1100)).astype(np.float64)
    args = [a, b, "f64[1]", 1100]
    case("nvcc13/fp64_cmp_sm80.ptx", 1, 1024, args, {2: (a @ b).reshape(1)}, entry="fp64_dot")

    reductions(rng)
    votes(rng)


def integers(rng):
    """Every integer operation that CUDA C++ has, added up."""
    n = 120
    a = rng.integers(-(2**31), 2**31, n)
    b = rng.integers(0, 2**32, n)
    c = rng.integers(-(2**63), 2**63 - 1, n)
    a[:6] = [1, -1, 7, 2**31 - 1, -(2**31), 40]
    b[:6] = [0, 1, 2**32 - 1, 2**31, 31, 7]
    c[:6] = [0, -1, 13, 2**63 - 1, 10**18, 100]
    c[6:20] = rng.integers(0, 2**32, 14)
    a[6:20] = rng.integers(1, 2**31, 14)
    out32, out64 = zip(*(integer(int(x), int(y), int(z)) for x, y, z in zip(a, b, c)), strict=True)
    args = [a.astype(np.int32), b.astype(np.uint32), c, f"i32[{n}]"]
    expected = {2: np.array(out64), 3: np.array(out32, np.int32)}
    case("nvcc13/integer_sm80.ptx", 3, 40, args, expected, entry="integer")


def integer(a, b, c):
    """One thread of the kernel `integer`: a is s32, b is u32, c is s64."""
    ua, sb, uc = a % 2**32, signed(b, 32), c % 2**64
    reverse = lambda v, width: int(f"{v:0{width}b}"[::-1], 2)  # noqa: E731
    total = [a, divide(a, 7), a - 7 * divide(a, 7), a << 3, a >> 2]
    total += [32 - ua.bit_length(), (ua & -ua).bit_length() - 1]
    total += [b // 7, b % 7, b >> 5, b.bit_count(), reverse(b, 32)]
    byte = lambda v, i: v >> 8 * i & 0xFF  # noqa: E731
    total += [5 + sum(signed(byte(ua, i), 8) * signed(byte(b, i), 8) for i in range(4))]
    selector = ua & 0x7777 ^ 0x3210
    total += [sum(byte(b << 32 | ua, selector >> 4 * i & 7) << 8 * i for i in range(4))]
    total += [a * a >> 32, b * b >> 32, 1, signed(a, 24) ** 2]
    total += [sum((byte(ua, i) + byte(b, i)) % 256 << 8 * i for i in range(4))]
    total += [b + abs(a - signed(a + 3, 32))]
    total += [((b << 32 | ua) << (a & 31)) >> 32, (b << 32 | ua) >> 5]
    wide = [b * a, c >> 3, c << 5, c - 13 * divide(c, 13), divide(c, 10), reverse(uc, 64)]
    wide += [uc.bit_count(), 64 - uc.bit_length(), c * c >> 64, divide(c, a)]
    return signed(sum(total), 32), signed(sum(wide), 64)


# Zeros, the least subnormal, one, its neighbour below, infinities and NaNs of all kinds.
SPECIAL_HALVES = [0, 0x8000, 1, 0x8001, 0x3C00, 0x3BFF, 0x7C00, 0xFC00, 0x7E00, 0xFE00, 0x7C01]
SPECIAL_BF16 = [0, 0x8000, 1, 0x8001, 0x3F80, 0x3F7F, 0x7F80, 0xFF80, 0x7FC0, 0xFFC0, 0x7F81]
ORDER = ["lt", "le", "gt", "ge", "eq", "ne"]


def pairs_to_compare(rng, special, near, far):
    """Two arrays of 16-bit patterns: all pairs of special ones, pairs that differ in a bit at most, random ones."""
    grid = np.stack(np.meshgrid(special, special), axis=-1).reshape(-1, 2)
    close = np.repeat(rng.integers(0, 2**16, (near, 1)), 2, axis=1) ^ rng.integers(0, 2, (near, 2))
    bits = np.concatenate([grid, close, rng.integers(0, 2**16, (far, 2))]).astype(np.uint16)
    return np.ascontiguousarray(bits[:, 0]), np.ascontiguousarray(bits[:, 1])


def compare(a, b):
    """Every comparison of two arrays of floats by its name, the unordered ones with a `u` at the end."""
    unordered = np.isnan(a) | np.isnan(b)
    ordered = dict(zip(ORDER, [a < b, a <= b, a > b, a >= b, a == b, (a != b) & ~unordered], strict=True))
    return ordered | {f"{name}u": flag | unordered for name, flag in ordered.items()}


def bit_field(flags):
    """One bit for each array of truths, the first one lowest."""
    return sum(flag.astype(np.uint32) << i for i, flag in enumerate(flags)).astype(np.uint32)


def half_compare(rng):
    """All comparisons of halves, one bit each."""
    a, b = (bits.view(np.float16) for bits in pairs_to_compare(rng, SPECIAL_HALVES, 100, 80))
    out = bit_field([*compare(a, b).values(), np.isnan(a), np.isinf(a)])
    args = [a, b, f"u32[{len(a)}]", len(a)]
    case("nvcc13/half_cmp_sm80.ptx", 3, 128, args, {2: out})
    case("nvrtc12/half_cmp_sm53.ptx", 10, 33, args, {2: out})


def half2_compare(rng):
    """All comparisons of pairs of halves: as numbers added up, as flags of both, as masks."""
    a, b = (bits.view(np.float16) for bits in pairs_to_compare(rng, SPECIAL_HALVES, 80, 63))
    truth = compare(a, b)
    count = (sum(flag.astype(int) for flag in truth.values()) + np.isnan(a)).astype(np.float16)
    order = [name + suffix for suffix in ("", "u") for name in ("eq", "ne", "le", "ge", "lt", "gt")]
    both = bit_field([truth[name].reshape(-1, 2).all(axis=1) for name in order])
    args = [a, b, f"f16[{len(a)}]", f"u32[{len(a) // 2}]"]
    case("nvcc13/half2_cmp_sm80.ptx", 4, 33, args, {2: count, 3: both})
    masks = np.stack([mask_of_pairs(truth[name]) for name in order], axis=1)
    case("nvcc13/half2_mask_sm100.ptx", 4, 33, [a, b, f"u32[{masks.size}]"], {2: masks})


def bf16_compare(rng):
    """Comparisons of bf16 and of pairs of them."""
    x, y = pairs_to_compare(rng, SPECIAL_BF16, 80, 63)
    a, b = widen(x), widen(y)
    truth = compare(a, b)
    names = ORDER + ["ltu", "neu"]
    out = bit_field([truth[name] for name in names] + [np.isnan(a)])
    args = [Bf16(x), Bf16(y), f"u32[{len(x)}]", len(x)]
    case("nvcc13/bf16_cmp_sm90.ptx", 3, 100, args, {2: out}, entry="bf16_cmp")
    ones = np.full(len(x), 0x3F80, np.uint16)
    masks = mask_of_pairs(truth["eq"]) ^ mask_of_pairs(truth["ltu"])
    sure = sum(truth[name].reshape(-1, 2).all(axis=1).astype(np.uint32) for name in ("equ", "lt"))
    args = [Bf16(x), Bf16(y), f"bf16[{len(x)}]", f"u32[{len(x) // 2}]", f"u32[{len(x) // 2}]"]
    expected = {2: ones, 3: masks, 4: sure}
    case("nvcc13/bf16_cmp_sm90.ptx", 1, len(x) // 2, args, expected, entry="bf162_cmp")


def mask_of_pairs(truth):
    """0xffff in each half that is true, low half first."""
    pairs = truth.reshape(-1, 2).astype(np.uint32)
    return pairs[:, 0] * np.uint32(0xFFFF) + pairs[:, 1] * np.uint32(0xFFFF0000)


def ternary(rng):
    """Choices of all kinds, with NaN and signed zeros."""
    n = 150
    x = (rng.standard_normal(n) * 2).astype(np.float32)
    y = rng.integers(-9, 10, n).astype(np.int32)
    x[:8] = [0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, 2.0, 1e-40]
    y[:8] = [1, 2, 0, 4, -4, 4, 0, 5]
    zero, one = np.float32(0), np.float32(1)
    relu = np.where(x > 0, x, zero)
    sign = np.where(y > -1, x, -x)
    clamp = np.where(np.isnan(x), -one, np.clip(x, -one, one))
    saturated = np.where(x > 0, np.minimum(x, one), zero)
    floats = np.concatenate([relu, sign, clamp, saturated]).astype(np.float32)
    choice = np.where((x < 1) & (y > 3), 7, np.where((x >= 2) | (y < -3), 9, 11))
    ints = np.concatenate([np.abs(y), choice, np.clip(y, -5, 5)]).astype(np.int32)
    longs = np.where(np.isnan(x), -1, y).astype(np.int64)
    args = [x, y, f"f32[{4 * n}]", f"i32[{3 * n}]", f"i64[{n}]", n]
    case("nvcc13/ternary_sm80.ptx", 3, 64, args, {2: floats, 3: ints, 4: longs})
    case("nvrtc12/ternary_sm53.ptx", 150, 1, args, {2: floats, 3: ints, 4: longs})


def reductions(rng):
    """Reductions over a grid (of integers, so that their order does not matter), and a scan over a warp."""
    x = rng.integers(-100, 100, 2000).astype(np.float32)
    case("nvrtc12/reduce_sm53.ptx", 3, 256, [x, "f32[1]", 2000], {1: x.sum(keepdims=True)}, entry="reduce_f")
    x = rng.integers(-(2**31), 2**31, 3001).astype(np.int32)
    total = np.array([signed(int(x.astype(np.int64).sum()), 32)], np.int32)
    case("nvrtc12/reduce_sm80.ptx", 2, 1024, [x, "i32[1]", 3001], {1: total}, entry="reduce_i")

    x = rng.integers(-(2**31), 2**31, 128).astype(np.int32)
    scan = np.cumsum(x.reshape(-1, 32), axis=1, dtype=np.int32)
    above = np.concatenate([scan[:, 1:], scan[:, 31:]], axis=1)
    # The index shuffle has a segment of 16 lanes: lane 0 of each half warp.
    first = scan[:, np.arange(32) & 16]
    out = (scan + above + first).reshape(-1)
    case("nvrtc12/reduce_sm53.ptx", 1, 128, [x], {0: out}, entry="scan_up")


def votes(rng):
    """Votes of a warp and of a block, added up."""
    x = rng.integers(-3, 4, 192).astype(np.int32)
    x[:32], x[64:96] = 1, -1
    x[96:] = np.abs(x[96:]) + 1
    positive = x.reshape(2, 3, 32) > 0
    lane = np.arange(32, dtype=np.int64)
    ballot = (positive * (1 << lane)).sum(axis=2, keepdims=True)
    count = positive.sum(axis=2, keepdims=True)
    block = positive.reshape(2, 1, 96)
    out = count + ballot + positive.any(axis=2, keepdims=True) + 2 * positive.all(axis=2, keepdims=True)
    out = out + (2**32 - 1) + ((1 << lane) - 1) + lane
    out = out + block.sum(axis=2, keepdims=True) + block.any(axis=2, keepdims=True) + block.all(axis=2, keepdims=True)
    case("nvrtc12/votes_sm53.ptx", 2, 96, [x, "u32[192]"], {1: (out.reshape(-1) % 2**32).astype(np.uint32)})


def tensor_cores(rng):
    # C = A B, A 16 x K by rows, B K x 16 by columns; K = 64 is one round of the unrolled loop, 80 and 112 leave a rest
    for file, k in (("nvcc13/wmma_mm_sm80", 80), ("nvcc13/wmma_mm_sm100", 112), ("nvrtc12/wmma_mm_sm70", 64)):
        a, b = rng.standard_normal((2, 16, k)).astype(np.float16)
        args = [a, b, "f32[16x16]", k]
        note = "sums in ascending k, each rounded to f32, as ptxvm documents; a GPU may differ in the last bits"
        case(f"{file}.ptx", 1, 32, args, {2: product(a, b.T)}, note=note)
