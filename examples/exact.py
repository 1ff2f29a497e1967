"""IEEE 754 arithmetic in numpy, bit for bit: what the references of the examples and of the corpus are made of.

numpy's own float32 operations round once each and are used as they are. Here is what it lacks.
"""

import numpy as np


def fma(a, b, c):
    """a * b + c of float32 (or narrower) arrays, rounded once to float32.

    The product of two float32 is exact in float64. The sum is rounded to odd there, which leaves enough bits for the
    second rounding to be the only one that counts.
    """
    product = np.asarray(a, np.float64) * np.asarray(b, np.float64)
    addend = np.asarray(c, np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        total = product + addend
        rest = total - product
        error = (product - (total - rest)) + (addend - rest)
    inexact = np.isfinite(total) & (error != 0)
    even = (np.atleast_1d(total).view(np.uint64).reshape(np.shape(total)) & 1) == 0
    towards = np.nextafter(total, np.where(error > 0, np.inf, -np.inf))
    with np.errstate(over="ignore"):
        return np.where(inexact & even, towards, total).astype(np.float32)


def exp2(x):
    """2^x of a float32 array, correctly rounded to float32.

    A GPU's ex2.approx may be 2 units in the last place off; ptxvm returns the rounded value. float64 is wide enough as
    long as no result lies between two float32 to within its own error, which is checked.
    """
    wide = np.exp2(np.asarray(x, np.float64))
    low = (wide * (1 - 2.0**-50)).astype(np.float32)
    high = (wide * (1 + 2.0**-50)).astype(np.float32)
    assert np.array_equal(low, high), "a result too near to the middle of two float32"
    return low


def shuffle_down(values, distance):
    """shfl.sync.down over the last axis, a whole warp: lane i gets what lane i + distance holds, or keeps its own."""
    out = values.copy()
    out[..., : 32 - distance] = values[..., distance:]
    return out


def shuffle_xor(values, distance):
    """shfl.sync.bfly over the last axis, a whole warp: lane i gets what lane i ^ distance holds."""
    return values[..., np.arange(32) ^ distance]
