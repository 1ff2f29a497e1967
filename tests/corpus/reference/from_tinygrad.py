"""Kernels that tinygrad 0.14 renders, its own and those of its test suite. The name says the shape of the loops."""

import numpy as np
from common import case, exp2, fma


def cases():
    rng = np.random.default_rng(400)
    elementwise(rng)
    layout(rng)
    reductions(rng)


def elementwise(rng):
    a, b, c = rng.integers(0, 2**32, (3, 256), dtype=np.uint32)
    case("tinygrad014/bits_u32.ptx", 2, 32, ["u32[256]", a, b, c], {0: (a ^ b) & (c | 3)})

    bits = rng.integers(0, 2**16, (2, 256)).astype(np.uint16)
    bits[1, ::3] = bits[0, ::3]
    bits[:, :4] = [[0, 0x7E00, 0x8000, 0xFC00], [0x8000, 0x7E00, 0, 0x7C00]]
    a, b = bits.view(np.float16)
    out = (~(a < b)).astype(np.uint8)
    case("tinygrad014/cmp_ge_f16.ptx", 2, 32, ["u8[256]", a, b], {0: out})

    a, b = rng.integers(-(2**15), 2**15, (2, 256)).astype(np.int16)
    case("tinygrad014/mul_i16.ptx", 2, 32, ["i16[256]", a, b], {0: a * b})

    a = rng.integers(0, 2**64, 256, dtype=np.uint64)
    case("tinygrad014/cast_u64_u8.ptx", 2, 32, ["u8[256]", a], {0: (a % 256).astype(np.uint8)})

    bits = rng.integers(0, 2**16, 256).astype(np.uint16)
    bits = np.where(bits & 0x7FFF > 0x7C00, bits & 0xBFFF, bits)
    a = bits.view(np.float16)
    case("tinygrad014/cast_f16_f64.ptx", 2, 32, ["f64[256]", a], {0: a.astype(np.float64)})

    # round to even, put together from truncations in half precision
    bits[::2] = (rng.integers(-60, 61, 128) / 4).astype(np.float16).view(np.uint16)
    a = bits.view(np.float16)
    with np.errstate(invalid="ignore", over="ignore"):
        half, one = np.float16(0.5), np.float16(1)
        down, up = a - half, a + half
        ceiling = np.where(np.trunc(down) < down, np.trunc(down) + one, np.trunc(down))
        floor = np.where(up < np.trunc(up), np.trunc(up) - one, np.trunc(up))
        even = np.trunc(np.trunc(a) * half) == np.trunc(a) * half
        out = np.where((a > 0) ^ even, floor, ceiling)
    case("tinygrad014/round_f16.ptx", 2, 32, ["f16[256]", a], {0: out})

    # one thread a block, and a parameter that is only there to be bound
    x = rng.standard_normal(10).astype(np.float32)
    out = np.zeros(10, np.float32)
    out[:7] = x[:7] + np.float32(1)
    case("suite_tinygrad/71940c6af8bd9c84.ptx", 7, 1, ["f32[10]", x, 7], {0: out})


def layout(rng):
    x = rng.standard_normal((10, 10)).astype(np.float32)
    case("tinygrad014/pad.ptx", (7, 3), (4, 2), ["f32[12x14]", x], {0: np.pad(x, ((1, 1), (2, 2)))})
    case("suite_tinygrad/8c204ab35ffb8a93.ptx", (5, 5), (2, 2), ["f32[10x10]", x], {0: x.T.copy()})

    a, b = rng.standard_normal(10).astype(np.float32), rng.standard_normal(12).astype(np.float32)
    case("tinygrad014/cat.ptx", 11, 2, ["f32[22]", a, b], {0: np.concatenate([a, b])})

    # one stage of a sorting network
    x = rng.standard_normal(16).astype(np.float32)
    case("tinygrad014/sort_8.ptx", 1, 8, ["f32[16]", x], {0: np.sort(x.reshape(8, 2), axis=1).reshape(-1)})


def reductions(rng):
    a, b = rng.integers(-(2**63), 2**63 - 1, (2, 16, 16))
    case("tinygrad014/matmul_i64.ptx", (16, 16), 16, ["i64[16x16]", a, b], {0: a @ b})

    x = rng.integers(-(2**31), 2**31, (16, 64)).astype(np.int32)
    x[3] = np.iinfo(np.int32).min
    case("tinygrad014/max_i32.ptx", 16, 16, ["i32[16]", x], {0: x.max(axis=1)})

    x = rng.standard_normal((16, 64)).astype(np.float16)
    part = in_order(x.astype(np.float32))
    total = in_order(part)
    case("tinygrad014/sum_f16.ptx", 1, 16, ["f16[1]", x], {0: total.astype(np.float16).reshape(1)})

    # scores of attention: a three-dimensional grid
    q, k = rng.standard_normal((2, 2, 16, 16, 2)).astype(np.float32)
    part = np.zeros((2, 16, 16, 16), np.float32)
    for i in range(2):
        part = fma(q[:, :, None, :, i], k[:, None, :, :, i], part)
    out = in_order(part) * np.float32(0.17677669)
    case("tinygrad014/attention_0.ptx", (16, 16, 2), 16, ["f32[2x16x16]", q, k], {0: out})

    # 2 x 2 maximum over windows of rows of 28
    x = rng.standard_normal((8, 11, 28)).astype(np.float32)
    row, column = 2 * np.arange(5)[:, None], 3 * np.arange(9)[None, :]
    corners = [x[:, row + i, column + j] for i in (0, 1) for j in (0, 1)]
    out = np.maximum.reduce(corners)
    case("suite_tinygrad/26b03ea0fede1956.ptx", (3, 5), (8, 3), ["f32[8x5x9]", x], {0: out})

    # a loop whose length is a parameter
    x = rng.standard_normal((2, 4, 10)).astype(np.float32)
    out = x[:, :, :7].max(axis=2)
    case("suite_tinygrad/321e1393cd433cc0.ptx", 1, 2, ["f32[8]", x, 7], {0: out.reshape(-1)})

    # vector times matrix, in four steps a thread
    m = rng.standard_normal((4, 4, 16)).astype(np.float32)
    v = rng.standard_normal((4, 16)).astype(np.float32)
    part = np.zeros((4, 16), np.float32)
    for i in range(4):
        part = fma(m[i], v[i], part)
    case("suite_tinygrad/eaa2812cd2b8b6ec.ptx", 4, 16, ["f32[4]", m, v], {0: in_order(part)})

    # logarithm of a sum of powers; the approximate functions count as correctly rounded
    x = rng.standard_normal((16, 2)).astype(np.float32)
    powers = exp2(x * np.float32(1.44269504))
    total = in_order(in_order(powers))
    wide = np.log2(np.float64(total))
    logarithm = np.float32(wide)
    assert np.float32(wide * (1 + 2.0**-50)) == logarithm == np.float32(wide * (1 - 2.0**-50))
    out = logarithm * np.float32(0.6931472)
    assert np.array([0.6931472, 1.44269504], np.float32).view(np.uint32).tolist() == [0x3F317218, 0x3FB8AA3B]
    note = "ex2.approx and lg2.approx differ between GPUs; expected is the correctly rounded value of each"
    case("suite_tinygrad/e9096a229c4f8d4a.ptx", 1, 16, ["f32[1]", x], {0: np.array([out], np.float32)}, note=note)


def in_order(x):
    """The sums over the last axis, added up one after the other, starting from 0."""
    total = np.zeros(x.shape[:-1], x.dtype)
    for i in range(x.shape[-1]):
        total = total + x[..., i]
    return total
