"""More elementwise kernels and reductions of tinygrad 0.14, for its newest target and for sm_75 and sm_35, and its
approximate functions: one value each of 256, `E_2_32_4`, unless it says otherwise."""

import numpy as np
from common import case, narrow, widen

N = 256


def one(name, out, *inputs, ulps=0, lenient=False, folder="tinygrad014", **more):
    """A kernel whose first parameter is the output."""
    kind = {"bool": "u8"}.get(out.dtype.name, out.dtype.name.replace("int", "i").replace("float", "f"))
    kind = kind.replace("ui", "u")
    args = [f"{kind}[{out.size}]", *inputs]
    out = out.view(np.uint8) if out.dtype == bool else out
    grid, block = more.get("grid", 2), more.get("block", 32)
    case(f"{folder}/{name}.ptx", grid, block, args, {0: out}, ulps=ulps, lenient=lenient)


def cases():
    rng = np.random.default_rng(410)
    integers(rng)
    casts(rng)
    bf16(rng)
    comparisons(rng)
    approximations(rng)
    reductions(rng)


def integers(rng):
    a, b, c = rng.integers(-(2**15), 2**15, (3, N)).astype(np.int16)
    one("bits_i16", (a ^ b) & (c | 3), a, b, c)
    one("shl_i16", a << 3, a)
    for folder in ("tinygrad014_sm35", "tinygrad014_sm75"):
        one("shl_i16", a << 3, a, folder=folder)
    a, b = rng.integers(-(2**31), 2**31, (2, N)).astype(np.int32)
    one("shl_i32", a << 3, a)
    one("shr_i32", a >> 3, a)
    for folder in ("tinygrad014_sm35", "tinygrad014_sm75"):
        one("shr_i32", a >> 3, a, folder=folder)
    a, b = rng.integers(0, 2**64, (2, N), dtype=np.uint64)
    one("mul_u64", a * b, a, b)


def casts(rng):
    a = rng.integers(-(2**15), 2**15, N).astype(np.int16)
    one("cast_i16_f16", a.astype(np.float16), a)
    one("cast_i16_i32", a.astype(np.int32), a)
    one("cast_i16_f16", a.astype(np.float16), a, folder="tinygrad014_sm75")
    a = rng.integers(-(2**31), 2**31, N).astype(np.int32)
    one("cast_i32_i64", a.astype(np.int64), a)
    one("cast_i32_u8", (a & 255).astype(np.uint8), a)
    a = rng.integers(0, 2**32, N, dtype=np.uint32)
    one("cast_u32_f32", a.astype(np.float32), a)
    one("cast_u32_f32", a.astype(np.float32), a, folder="tinygrad014_sm35")
    one("cast_u32_f32", a.astype(np.float32), a, folder="tinygrad014_sm75")
    a %= 70000  # the largest half is 65504
    with np.errstate(over="ignore"):
        one("cast_u32_f16", a.astype(np.float64).astype(np.float16), a)
    a = rng.integers(0, 2**64, N, dtype=np.uint64)
    one("cast_u64_i16", (a & 0xFFFF).astype(np.uint16).view(np.int16), a)
    one("cast_u64_i16", (a & 0xFFFF).astype(np.uint16).view(np.int16), a, folder="tinygrad014_sm75")
    a = rng.standard_normal(N) * 10.0 ** rng.integers(-44, 44, N)
    a[:4] = [0.0, -0.0, np.inf, -np.inf]
    with np.errstate(over="ignore"):
        one("cast_f64_f32", a.astype(np.float32), a)


def bf16(rng):
    """tinygrad computes bf16 by hand in f32."""
    values = (rng.standard_normal((2, N)) * 10.0 ** rng.integers(-5, 6, (2, N))).astype(np.float32)
    a, b = (narrow(v) for v in values)
    x, y = widen(a), widen(b)
    one("trunc_bf16", narrow(np.trunc(x)), a)
    one("trunc_bf16", narrow(np.trunc(x)), a, folder="tinygrad014_sm75")
    one("maximum_bf16", narrow(np.maximum(x, y)), a, b)
    one("cmp_lt_bf16", x < y, a, b)
    c = np.where(np.arange(N) % 3 == 0, a, b)
    one("cmp_ne_bf16", x != widen(c), a, c)
    one("cast_bf16_u64", np.abs(x).astype(np.uint64), narrow(np.abs(x)))
    flags = rng.integers(0, 2, N).astype(np.uint8)
    one("cast_bool_bf16", narrow(flags.astype(np.float32)), flags)
    whole = rng.integers(-(2**31), 2**31, N).astype(np.int32)
    one("cast_i32_bf16", narrow(whole.astype(np.float32)), whole)


def comparisons(rng):
    a, b = rng.integers(0, 5, (2, N)).astype(np.uint32)
    one("eq_u32", a == b, a, b)
    a, b = rng.integers(-3, 4, (2, N)) / 2
    a[:2], b[1:3] = np.nan, np.nan
    one("cmp_ne_f64", a != b, a, b)
    one("cmp_ne_f32", a.astype(np.float32) != b.astype(np.float32), a.astype(np.float32), b.astype(np.float32))
    one("cmp_lt_f16", a.astype(np.float16) < b.astype(np.float16), a.astype(np.float16), b.astype(np.float16))
    a, b, c = (rng.integers(-3, 4, (3, N)) / 2).astype(np.float32)
    one("bool_ops", ((a > 0) & (b < 1)) | (c == 2), a, b, c)
    x = rng.standard_normal(N).astype(np.float32)
    one("relu_f32", np.maximum(x, np.float32(0)), x)


def approximations(rng):
    """Bounds in units of the last place: what the manual allows each instruction, and the roundings around it."""
    x = rng.uniform(-20, 20, N).astype(np.float32)
    scaled = (x * np.float32(1.44269504)).astype(np.float64)
    one("exp_f32", np.exp2(scaled).astype(np.float32), x, ulps=2)
    x = rng.uniform(1.5, 1e6, N).astype(np.float32)
    one("log_f32", np.log(x.astype(np.float64)).astype(np.float32), x, ulps=4)
    a, b = rng.standard_normal((2, N)).astype(np.float32)
    one("div_f32", (a.astype(np.float64) / b).astype(np.float32), a, b, ulps=2)
    h = np.abs(rng.standard_normal(N)).astype(np.float16)
    one("sqrt_f16", np.sqrt(h.astype(np.float64)).astype(np.float16), h, ulps=1)
    d = rng.uniform(0.0, 1e10, N)
    one("sqrt_f64", np.sqrt(d), d, ulps=1, lenient=True)
    d = rng.uniform(-30.0, 30.0, N)
    one("sin_f64", np.sin(d), d, ulps=2, lenient=True)
    one("sin_f64", np.sin(d), d, ulps=2, lenient=True, folder="tinygrad014_sm35")
    one("sin_f64", np.sin(d), d, ulps=2, lenient=True, folder="tinygrad014_sm75")


def reductions(rng):
    x = rng.integers(-(2**63), 2**63 - 1, (16, 64))
    one("max_i64", x.max(axis=1), x, grid=16, block=16)
    x = rng.standard_normal((16, 64)).astype(np.float32)
