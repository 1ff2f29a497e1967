"""Kernels that numba and numba-cuda compiled.

An array arrives as the parameters (meminfo, parent, nitems, itemsize, data, shape.., strides..).
"""

import numpy as np
from common import array1, array2, case, fma, fma64, shuffle_down, shuffle_xor


def cases():
    rng = np.random.default_rng(100)

    # a[cuda.grid(3)] = threads in the grid, for a three-dimensional grid of blocks of 33 threads
    shape = (2 * 3, 3 * 11, 4 * 1)
    total = np.full(shape, shape[0] * shape[1] * shape[2], np.int32)
    flat = [0, 0, total.size, 4, "i32[6x33x4]", 6, 33, 4, 33 * 4 * 4, 4 * 4, 4]
    case("suite_numba060/3e17100ed5befa20.ptx", (2, 3, 4), (3, 11, 1), flat, {4: total})

    # 3 x 3 mean of the inner pixels of an 8-bit image
    image = rng.integers(0, 256, (37, 29)).astype(np.uint8)
    mean = np.zeros_like(image)
    total = sum(image[i : 35 + i, j : 27 + j].astype(int) for i in range(3) for j in range(3))
    mean[1:-1, 1:-1] = total // 9
    args = array2(image, 37, 29, 1) + array2("u8[37x29]", 37, 29, 1)
    case("numbacuda030/blur_2d_sm90.ptx", (3, 2), (16, 16), args, {13: mean})
    case("numbaclassic060/blur_2d_sm53.ptx", (5, 1), (8, 32), args, {13: mean})

    # matrix product in shared tiles
    a = rng.standard_normal((35, 40)).astype(np.float32)
    b = rng.standard_normal((40, 45)).astype(np.float32)
    c = np.zeros((35, 45), np.float32)
    for i in range(40):
        c = fma(a[:, i : i + 1], b[i : i + 1, :], c)
    args = array2(a, 35, 40, 4) + array2(b, 40, 45, 4) + array2("f32[35x45]", 35, 45, 4)
    case("numbacuda030/matmul_shared_f32_sm90.ptx", (3, 3), (16, 16), args, {22: c})

    # sums over warps, added up by atomics: of integers, so that the order does not matter
    x = rng.integers(-50, 50, 2048).astype(np.float32)
    args = array1(x, 2048, 4) + array1("f32[1]", 1, 4)
    case("numbacuda030/reduce_shfl_f32_sm80.ptx", 2, 1024, args, {11: x.sum(keepdims=True)})

    # tree reduction in shared memory
    x = rng.integers(-1000, 1000, 700).astype(np.float64)
    args = array1(x, 700, 8) + array1("f64[1]", 1, 8)
    case("numbacuda030/reduce_shared_f64_sm80.ptx", 3, 256, args, {11: x.sum(keepdims=True)})

    # broadcast of lane 3 + lane below + lane above; exchange of 64-bit neighbours in two halves
    a = rng.integers(-(2**31), 2**31, 192).astype(np.int32)
    b = rng.integers(-(2**63), 2**63 - 1, 192)
    lanes = a.reshape(-1, 32)
    up = lanes.copy()
    up[:, 1:] = lanes[:, :-1]
    mixed = (lanes[:, 3:4] + up + shuffle_down(lanes, 1)).reshape(-1)
    swapped = shuffle_xor(b.reshape(-1, 32), 1).reshape(-1)
    args = array1(a, 192, 4) + array1(b, 192, 8)
    case("numbacuda030/shfl_mix_sm80.ptx", 2, 96, args, {4: mixed, 11: swapped})

    # steps of the Collatz sequence, at most 1001; blocks of one thread
    start = np.concatenate([np.arange(1, 60), [97, 871, 6171, 2**40 + 1]]).astype(np.int64)
    steps = [collatz(int(s), 1001) for s in start]
    args = array1(start, len(start), 8) + array1(f"i64[{len(start)}]", len(start), 8)
    case("numbacuda030/collatz_sm80.ptx", len(start), 1, args, {11: np.array(steps, np.int64)})

    # z^2 + conj(z) of complex64, here as pairs of float32
    z = rng.standard_normal((132, 2)).astype(np.float32)
    re, im = z[:, 0], z[:, 1]
    out = np.stack([re + (re * re - im * im), fma(re, im, re * im) - im], axis=1)
    args = array1(z, 132, 8) + array1("f32[132x2]", 132, 8)
    case("numbacuda030/complex_mul_sm80.ptx", 4, 33, args, {11: out})

    # |x|, but of the zeros too the sign changes
    x = rng.standard_normal(99)
    x[:6] = [0.0, -0.0, np.inf, -np.inf, 5e-324, -5e-324]
    args = array1(x, 99, 8) + array1("f64[99]", 99, 8)
    case("numbaclassic060/selp_f64_sm53.ptx", 3, 33, args, {11: np.where(x > 0, x, -x)})

    # saxpy: integers wrap, doubles round once
    x, y = rng.integers(-(2**31), 2**31, (2, 1000)).astype(np.int32)
    args = [-12345] + array1(x, 1000, 4) + array1(y, 1000, 4) + array1("i32[1000]", 1000, 4)
    case("numbacuda030/saxpy_i32_sm90.ptx", 8, 128, args, {19: x * np.int32(-12345) + y})
    x, y = rng.standard_normal((2, 301))
    y[:50] = -0.1 * x[:50]
    args = ["0.1"] + array1(x, 301, 8) + array1(y, 301, 8) + array1("f64[301]", 301, 8)
    case("numbacuda030/saxpy_f64_sm80.ptx", 2, 256, args, {19: fma64(np.full(301, 0.1), x, y)})

    # bytes, in 16-bit arithmetic; division by 0 gives 0
    a, b = rng.integers(0, 256, (2, 1024))
    b[::17] = 0
    quotient = np.where(b == 0, 0, a // np.maximum(b, 1))
    remainder = np.where(b == 0, 0, a % np.maximum(b, 1))
    out = (a << 3) + (a >> 2) + (a & b) + (a | b) + (a ^ b) + np.minimum(a, b) + np.maximum(a, b) - 1
    out = (out + quotient + remainder).astype(np.uint8)
    args = array1(a.astype(np.uint8), 1024, 1) + array1(b.astype(np.uint8), 1024, 1) + array1("u8[1024]", 1024, 1)
    case("numbacuda030/int_ops_u8_sm90.ptx", 1, 1024, args, {18: out})

    # reduction of 256 integers in shared memory, with a remainder in the loop; the sum goes to element 0
    a = rng.integers(-(10**6), 10**6, 256)
    out = a.copy()
    out[0] = a.sum()
    case("suite_numba_cuda/97882d55d9bd5071.ptx", 1, 256, array1(a, 256, 8), {4: out})

    # least of 32 doubles and what is there, by compare-and-swap on shared memory in a loop
    best, x = np.array([-0.25]), rng.standard_normal(32)
    args = array1(best, 1, 8) + array1(x, 32, 8)
    case("suite_numba060/414a104376a8451b.ptx", 1, 32, args, {4: np.array([min(-0.25, x.min())])})

    mathematics(np.random.default_rng(101))


def mathematics(rng):
    """Functions of libdevice, added up. The terms have one sign and the sums are of their size, so that errors in units of the
    last place add up to no more than those of the functions: the CUDA C++ Programming Guide has a table of them."""
    # sin + cos exp - log + sqrt + x^1.5 + tanh + atan2(x, 2) + floor + ceil
    x = np.concatenate([[2.0**-6, 0.25, 0.5, 1.0, 1.5], rng.uniform(2.0**-6, 1.5, 507)])
    for name, single, ulps in [
        # 2, 2 + 2, 1, 0, 4, 2, 3, 0, 0, and half a unit for each of nine roundings
        ("numbacuda030/math_f32_sm80", True, 20),
        # 2, 2 + 1, 1, 0, 2, 2, 2, 0, 0, and the roundings
        ("numbacuda030/math_f64_sm80", False, 15),
        ("numbacuda030/math_f64_sm90", False, 15),
        ("numbaclassic060/math_f64_sm53", False, 15),
        ("numbaclassic060/math_f64_sm90", False, 15),
        # sin.approx and cos.approx are off by 2^-20.5, lg2.approx by 2^-22, and the sum has a last place of 2^-21 at least
        ("numbaclassic060/math_f32_fast_sm53", True, 32),
        ("numbaclassic060/math_f32_fast_sm90", True, 1056),
        # tanh.approx by 2^-11 of its value
        ("numbacuda030/math_f32_fast_sm90", True, 1056),
    ]:
        dtype = np.float32 if single else np.float64
        a = x.astype(dtype)
        w = a.astype(np.longdouble)
        out = np.sin(w) + np.cos(w) * np.exp(w) - np.log(w) + np.sqrt(w) + w ** np.longdouble(1.5) + np.tanh(w)
        out = (out + np.arctan2(w, np.longdouble(2)) + np.floor(w) + np.ceil(w)).astype(dtype)
        size = out.itemsize
        args = array1(a, 512, size) + array1(f"f{8 * size}[512]", 512, size)
        case(f"{name}.ptx", 4, 128, args, {11: out}, ulps=ulps)

    # x^2 + y, with one rounding, plus cbrt(x): 1 unit of the last place, and the roundings
    x = np.concatenate([[0.0, 1.0, 5e-324, 1e-310], rng.uniform(0, 100, 252)])
    y = rng.uniform(0, 100, 256)
    w = x.astype(np.longdouble)
    out = (w * w + y + np.cbrt(w)).astype(np.float64)
    for name in ["numbacuda030/fma_cbrt_sm80", "numbacuda030/fma_cbrt_sm90", "numbaclassic060/fma_cbrt_sm90"]:
        case(f"{name}.ptx", 2, 128, array1(x, 256, 8) + array1(y, 256, 8), {11: out}, ulps=2)

    # mantissa and exponent of x: ldexp(mantissa, n) + exponent; 0 for what is not finite
    x = rng.standard_normal(128) * 2.0 ** rng.integers(-300, 300, 128)
    x[:8] = [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 1.5e-310, -1.0]
    n = rng.integers(-60, 60, 128).astype(np.int32)
    mantissa, exponent = np.frexp(x)
    with np.errstate(invalid="ignore"):
        out = np.where(np.isfinite(x), np.ldexp(mantissa, n) + exponent, 0.0)
    args = array1(x, 128, 8) + array1(n, 128, 4) + array1("f64[128]", 128, 8)
    for name in ["numbacuda030/isnan_ldexp_sm90", "numbaclassic060/isnan_ldexp_sm53", "numbaclassic060/isnan_ldexp_sm90"]:
        case(f"{name}.ptx", 1, 128, args, {18: out})


def collatz(value, most):
    """How many steps lead to 1, at most `most`."""
    steps = 0
    while value != 1 and steps < most:
        value = 3 * value + 1 if value % 2 else value // 2
        steps += 1
    return steps
