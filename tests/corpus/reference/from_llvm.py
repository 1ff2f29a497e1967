"""Kernels that clang 22 and rustc 1.95 compiled."""

import numpy as np
from common import canonical, case, divide, fma, signed


def cases():
    rng = np.random.default_rng(300)
    clang(rng)
    rust(rng)


def clang(rng):
    # mixed precision: f32 = f32 + f16, fma of two halves and a float
    a, b = rng.standard_normal((2, 32)).astype(np.float16)
    c = np.zeros(96, np.float32)
    c[:32] = rng.standard_normal(32)
    total = c[:32] + a.astype(np.float32)
    out = np.concatenate([total, fma(a, b, total), total - b.astype(np.float32)])
    case("clang22/m_O1_sm100.ptx", 1, 32, [a, b, c], {2: out}, entry="mixed")
    case("clang22/m_O3_sm100.ptx", 1, 32, [a, b, c], {2: out}, entry="mixed")

    # butterfly in a loop that is not unrolled, then a ballot
    x = rng.integers(-100, 100, 128).astype(np.int32)
    x[32:64] = -np.abs(x[32:64])
    total = np.repeat(x.reshape(4, 32).sum(axis=1, dtype=np.int32), 32)
    case("clang22/m_O1_sm100.ptx", 2, 64, [x], {0: total - (total > 3)}, entry="shfl")

    # conversions between floats and integers, saturating
    x = (rng.standard_normal(66) * 1000).astype(np.float32)
    x[:8] = [0.5, -0.5, -1.0, 1e18, -1e18, 127.9, 32768.0, 1.9999999]
    wide = [max(int(v), 0) for v in x]
    short = [signed(min(max(int(v), -(2**15)), 2**15 - 1), 8) for v in x]
    double = x.astype(np.float64)
    back = (double + np.array([float(w) for w in wide]) + np.array(short, np.float64)).astype(np.float32)
    expected = {0: back, 1: np.array(short, np.int8), 2: np.array(wide, np.uint64), 3: double}
    case("clang22/m_O1_sm100.ptx", 2, 33, [x, "i8[66]", "u64[66]", "f64[66]"], expected, entry="conv")


def rust(rng):
    file = "rustc/k_O3_sm70.ptx"

    special = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 5e-324])
    x, y = (v.reshape(-1) for v in np.meshgrid(special, special))
    x, y = np.concatenate([x, rng.standard_normal(35)]), np.concatenate([y, rng.standard_normal(35)])
    order = np.where(x < y, 0, np.where(x == y, 16, np.where(x > y, 32, 64)))
    flags = (x < y) * 1 + (x == y) * 2 + ~(x == y) * 4 + np.isnan(x) * 8
    case(file, 3, 33, [x, y, "u32[99]"], {2: (order + flags).astype(np.uint32)}, entry="cmp_f64")

    # halves, each operation rounded; a product of halves is exact in float32, so that numpy rounds once as well
    bits = rng.integers(0, 2**16, (2, 256)).astype(np.uint16)
    bits[:, 128:] = bits[:, 128:] % 0x800 + 0x3800
    x, y = bits.view(np.float16)
    with np.errstate(invalid="ignore", over="ignore"):
        out = np.where(x > y, canonical(x + x * y), canonical(y - x))
    case(file, 1, 256, [x, y, "f16[256]"], {2: out}, entry="half")

    # integers; division by zero and overflow are caught by the program
    n = 99
    a, b = rng.integers(-(2**31), 2**31, (2, n))
    a[:5], b[:5] = [-(2**31), -(2**31), 5, 2**31 - 1, -7], [-1, 3, 0, 1, -2]
    b[20:40] = rng.integers(-10, 10, 20)
    out = np.array([rust_integers(int(x), int(y)) for x, y in zip(a, b, strict=True)])
    args = [a.astype(np.int32), b.astype(np.int32), f"i64[{n}]"]
    case(file, 3, 33, args, {2: out}, entry="ints")

    # Rust never contracts: the product and the sum round each
    x, y = rng.standard_normal((2, 500)).astype(np.float32)
    y[:100] = np.float32(-1.7) * x[:100]
    case(file, 2, 256, ["1.7", x, y, 500], {2: np.float32(1.7) * x + y}, entry="saxpy")

    # a loop over a slice with bounds checks; one thread
    data = rng.integers(0, 256, 1001).astype(np.uint8)
    total = 0
    for i in range(1001):
        total = total + 31 * int(data[i]) if i % 3 == 1 else total ^ int(data[1000 - i])
    note = "calls an external function where a bounds check fails, which it never does"
    case(file, 1, 1, [data, 1001, "u32[1]"], {2: np.array([total], np.uint32)}, entry="slice_sum", note=note)

    # brx.idx; case 5 reads what a neighbour writes, and is left out
    choice = rng.choice(np.array([-3, 0, 1, 2, 3, 4, 6, 7, 100]), 128).astype(np.int32)
    table = {0: 5, 1: 3, 2: 17, 3: np.arange(128), 4: -9, 6: 77}
    out = np.full(128, -1)
    for value, result in table.items():
        out = np.where(choice == value, result, out)
    case(file, 2, 64, [choice], {0: out.astype(np.int32)}, entry="sw")

    # (a * b) >> 3 of two 128-bit integers
    words = rng.integers(0, 2**64, 4, dtype=np.uint64)
    x, y = (int(words[i]) | int(words[i + 1]) << 64 for i in (0, 2))
    product = x * y % 2**128 >> 3
    out = words.copy()
    out[:2] = [product % 2**64, product >> 64]
    case(file, 1, 1, [words], {0: out}, entry="u128mul")


def rust_integers(a, b):
    """One thread of the kernel `ints`."""
    ub = b % 2**32
    quotient = divide(a, b) if b != 0 and (a, b) != (-(2**31), -1) else 3
    product = a * 7 % 2**32
    rotated = signed(product << 3 | product >> 29, 32)
    bits = 32 - ub.bit_length() + ub.bit_count() + int.from_bytes(ub.to_bytes(4, "little"), "big")
    saturated = min(max(a + b, -(2**31)), 2**31 - 1)
    rounded = int(np.float32(a))
    clamped = min(max(a, -3), 9)
    return signed(ub * a + rounded + rotated + saturated + clamped + bits % 2**32 + quotient, 64)
