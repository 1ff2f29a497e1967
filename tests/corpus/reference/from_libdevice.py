"""Mathematics of libdevice, as Triton inlines it, against float64.

The bounds are sums: for each function the error that the CUDA C++ Programming Guide gives ("Mathematical Functions"), in
units of the last place of the result, and half a unit for each addition.
"""

import math

import numpy as np
from common import case


def cases():
    rng = np.random.default_rng(700)
    erf = np.vectorize(math.erf)

    # sin + cos + log + exp2 + sqrt + rsqrt + |x| + floor + erf: 2 + 2 + 1 + 2 + 1 + 2 + 0 + 0 + 2, and 8 additions
    x = rng.uniform(0.5, 4.0, 700).astype(np.float32)
    d = x.astype(np.float64)
    total = np.sin(d) + np.cos(d) + np.log(d) + np.exp2(d) + np.sqrt(d) + 1 / np.sqrt(d) + d + np.floor(d) + erf(d)
    for file, scratch in FILES["math_f32"]:
        args = [x, "f32[700]", 700] + scratch
        case(f"{file}.ptx", 3, 128, args, {1: total.astype(np.float32)}, ulps=16)

    # tanh + asin + pow(x, x) + log1p: 1 + 2 + 4 + 1, and 3 additions
    x = rng.uniform(0.05, 0.95, 700).astype(np.float32)
    d = x.astype(np.float64)
    total = np.tanh(d) + np.arcsin(d) + d**d + np.log1p(d)
    for file, scratch in FILES["libdev_f32"]:
        args = [x, "f32[700]", 700] + scratch
        case(f"{file}.ptx", 3, 128, args, {1: total.astype(np.float32)}, ulps=10)


FILES = {
    "math_f32": [
        ("triton34/math_f32_sm80", [0]),
        ("triton39/math_f32_sm80", [0, 0]),
        ("triton39/math_f32_sm100", [0, 0]),
    ],
    "libdev_f32": [
        ("triton34/libdev_f32_sm80", [0]),
        ("triton39/libdev_f32_sm80", [0, 0]),
        ("triton39/libdev_f32_sm100", [0, 0]),
    ],
}
