"""Kernels in Python, for numba-cuda."""

import math

import numpy as np
from numba import cuda, float32, float64, int32

TILE = 16
WEIGHTS = np.array([0.5, -1.0, 2.0, 0.25, 8.0], np.float32)


def blur_2d(image, out):
    """The mean of 3 x 3 pixels."""
    i, j = cuda.grid(2)
    if 1 <= i < image.shape[0] - 1 and 1 <= j < image.shape[1] - 1:
        total = 0
        for di in range(-1, 2):
            for dj in range(-1, 2):
                total += image[i + di, j + dj]
        out[i, j] = total // 9


def matmul_shared(a, b, c):
    left = cuda.shared.array((TILE, TILE), float32)
    right = cuda.shared.array((TILE, TILE), float32)
    row, column = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for at in range(0, a.shape[1], TILE):
        left[x, y] = a[row, at + y] if row < a.shape[0] and at + y < a.shape[1] else float32(0)
        right[x, y] = b[at + x, column] if column < b.shape[1] and at + x < b.shape[0] else float32(0)
        cuda.syncthreads()
        for k in range(TILE):
            total += left[x, k] * right[k, y]
        cuda.syncthreads()
    if row < c.shape[0] and column < c.shape[1]:
        c[row, column] = total


def reduce_shfl(x, out):
    i = cuda.grid(1)
    total = x[i]
    for distance in (16, 8, 4, 2, 1):
        total += cuda.shfl_down_sync(0xFFFFFFFF, total, distance)
    if cuda.laneid == 0:
        cuda.atomic.add(out, 0, total)


def reduce_shared(x, out):
    part = cuda.shared.array(256, float64)
    i, own = cuda.grid(1), cuda.threadIdx.x
    part[own] = x[i] if i < x.size else 0.0
    cuda.syncthreads()
    half = 128
    while half > 0:
        if own < half:
            part[own] += part[own + half]
        cuda.syncthreads()
        half //= 2
    if own == 0:
        cuda.atomic.add(out, 0, part[0])


def shfl_mix(a, b):
    i = cuda.grid(1)
    if i < a.size:
        v, w = a[i], b[i]
        a[i] = cuda.shfl_sync(0xFFFFFFFF, v, 3) + cuda.shfl_up_sync(0xFFFFFFFF, v, 1) + cuda.shfl_down_sync(0xFFFFFFFF, v, 1)
        b[i] = cuda.shfl_xor_sync(0xFFFFFFFF, w, 1)


def collatz(start, steps):
    i = cuda.grid(1)
    if i < start.size:
        value, count = start[i], 0
        while value != 1 and count < 1001:
            value = 3 * value + 1 if value % 2 else value // 2
            count += 1
        steps[i] = count


def complex_mul(z, out):
    i = cuda.grid(1)
    if i < z.size:
        out[i] = z[i] * z[i] + z[i].conjugate()


def selp(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = x[i] if x[i] > 0 else -x[i]


def saxpy(factor, x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = factor * x[i] + y[i]


def int_ops(a, b, out):
    i = cuda.grid(1)
    if i < out.size:
        x, y = a[i], b[i]
        quotient = x // y if y != 0 else 0
        remainder = x % y if y != 0 else 0
        out[i] = (x << 3) + (x >> 2) + (x & y) + (x | y) + (x ^ y) + min(x, y) + max(x, y) - 1 + quotient + remainder


def mathematics(x, out):
    i = cuda.grid(1)
    if i < x.size:
        v = x[i]
        total = math.sin(v) + math.cos(v) * math.exp(v) - math.log(v) + math.sqrt(v) + v**1.5 + math.tanh(v)
        out[i] = total + math.atan2(v, 2.0) + math.floor(v) + math.ceil(v)


def more_mathematics(x, out):
    i = cuda.grid(1)
    if i < x.size:
        v = x[i]
        total = math.erf(v) + math.gamma(v) + math.log1p(v) + math.expm1(v) + math.hypot(v, 3.0) + math.fmod(v, 0.7)
        out[i] = total + math.asinh(v) + math.log10(v) + math.atan(v) + round(v) + math.copysign(v, -1.0)


def fma_cbrt(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = cuda.fma(x[i], x[i], y[i]) + cuda.cbrt(x[i])


def isnan_ldexp(x, n, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = 0.0
        if not (math.isnan(x[i]) or math.isinf(x[i])):
            mantissa, exponent = math.frexp(x[i])
            out[i] = math.ldexp(mantissa, n[i]) + exponent


def compare(x, y, out):
    i = cuda.grid(1)
    if i < x.size:
        a, b = x[i], y[i]
        out[i] = (a < b) + 2 * (a <= b) + 4 * (a == b) + 8 * (a != b) + 16 * (not a < b) + 32 * (a > 0 and b > 0)


def cast(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = x[i]


def bits(a, out):
    i = cuda.grid(1)
    if i < a.size:
        v = a[i]
        out[i] = cuda.popc(v) + cuda.brev(v) + cuda.clz(v) + cuda.ffs(v) + cuda.selp(v > 5, 3, 4)


def histogram(x, bins):
    own = cuda.shared.array(64, int32)
    thread = cuda.threadIdx.x
    if thread < 64:
        own[thread] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        cuda.atomic.add(own, x[i] & 63, 1)
    cuda.syncthreads()
    if thread < 64:
        cuda.atomic.add(bins, thread, own[thread])


def atomics_mix(x, out, floats):
    i = cuda.grid(1)
    if i < x.size:
        v = x[i]
        cuda.atomic.max(out, 0, v)
        cuda.atomic.min(out, 1, v)
        cuda.atomic.and_(out, 2, v)
        cuda.atomic.or_(out, 3, v)
        cuda.atomic.xor(out, 4, v)
        cuda.atomic.sub(out, 5, v)
        cuda.atomic.exch(out, 6, v)
        cuda.atomic.cas(out, 7, 0, v)
        cuda.atomic.max(floats, 0, float64(v))
        cuda.atomic.nanmin(floats, 1, float64(v))


def local_array(x, out):
    """Sorts a few elements in an array of the thread's own."""
    i = cuda.grid(1)
    own = cuda.local.array(8, int32)
    for k in range(8):
        own[k] = x[(8 * i + k) % x.size]
    for k in range(1, 8):
        v, at = own[k], k
        while at > 0 and own[at - 1] > v:
            own[at] = own[at - 1]
            at -= 1
        own[at] = v
    for k in range(8):
        out[8 * i + k] = own[k]


def const_array(x, out):
    weights = cuda.const.array_like(WEIGHTS)
    i = cuda.grid(1)
    if i < x.size:
        out[i] = x[i] * weights[i % 5]


def print_k(x):
    i = cuda.grid(1)
    if i < x.size:
        print("element", i, x[i], x[i] * 0.5)


def votes(x, out):
    i = cuda.grid(1)
    positive = int32(x[i] > 0)
    total = cuda.ballot_sync(0xFFFFFFFF, positive) + cuda.match_any_sync(0xFFFFFFFF, x[i])
    total += cuda.any_sync(0xFFFFFFFF, positive) + cuda.all_sync(0xFFFFFFFF, positive) + cuda.lanemask_lt() + cuda.activemask()
    cuda.syncwarp()
    out[i] = total + cuda.syncthreads_count(positive) + cuda.syncthreads_or(positive)


def fences(data, flag, out):
    if cuda.blockIdx.x == 0:
        data[cuda.threadIdx.x] = 3 * cuda.threadIdx.x
        cuda.threadfence()
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            cuda.atomic.exch(flag, 0, 1)
    else:
        while cuda.atomic.add(flag, 0, 0) == 0:
            cuda.nanosleep(32)
        cuda.threadfence_system()
        out[cuda.threadIdx.x] = data[cuda.threadIdx.x]


def records(points, scale):
    i = cuda.grid(1)
    if i < points.size:
        points[i]["x"] *= scale
        points[i]["kind"] += i
