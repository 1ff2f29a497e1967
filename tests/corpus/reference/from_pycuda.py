"""Kernels of PyCUDA's test suite, which nvcc compiled. Most are loops over a grid of any size."""

import numpy as np
from common import case, fma, fma64


def cases():
    rng = np.random.default_rng(500)

    x = rng.standard_normal((7, 5)).astype(np.float32)
    case("suite_pycuda/9023e7261f711588.ptx", 1, (5, 7), [x], {0: x + x})

    x, y = rng.standard_normal((2, 500)).astype(np.float32)
    x, a, b = x[:1], np.float32(0.3), np.float32(-1.1)
    out = fma(x, a, y * b)
    args = ["0.3", x, "-1.1", y, "f32[500]", 500]
    case("suite_pycuda/851977ad2f873488.ptx", 2, 33, args, {4: out})

    # a choice between pointers
    choose = rng.integers(-1, 2, 300)
    then, other = rng.integers(-(2**63), 2**63 - 1, (2, 300))
    args = [choose, then, other, "i64[300]", 300]
    case("suite_pycuda/15bcdbec416bbd56.ptx", 1, 1024, args, {3: np.where(choose != 0, then, other)})

    args = ["0xdeadbeef", "u32[1001]", 1001]
    case("suite_pycuda/1cea2ea0dbf7c5b1.ptx", 3, 33, args, {1: np.full(1001, 0xDEADBEEF, np.uint32)})

    # real number over complex number, scaled so that nothing overflows
    n = 41
    a = rng.standard_normal(n)
    z = rng.standard_normal((n, 2))
    z[:20] *= [1e150, 1]
    re, im = z[:, 0], z[:, 1]
    swap = np.abs(re) <= np.abs(im)
    big, small = np.where(swap, im, re), np.where(swap, re, im)
    ratio = small / big
    denominator = big * fma64(ratio, ratio, np.ones(n))
    scaled = a * ratio
    out = np.stack([np.where(swap, scaled, a) / denominator, np.where(swap, -a, -scaled) / denominator], axis=1)
    args = [a, z, f"f64[{n}x2]", n]
    case("suite_pycuda/16137213c6a96f35.ptx", 1, 64, args, {2: out})

    # indexed sum in shared memory of the launch, the last warp without barriers
    index = rng.integers(0, 100, 1500).astype(np.int32)
    data = rng.integers(-1000, 1000, 100).astype(np.float64)
    picked = data[index]
    out = np.array([picked[:1024].sum(), picked[1024:].sum()])
    args = ["f64[2]", index, data, 2, 1500]
    note = "the last warp relies on its lanes going in step, as code from before sm_70 does"
    case("suite_pycuda/74317cf18bf6aedb.ptx", 2, 512, args, {0: out}, shared=4096, note=note)
