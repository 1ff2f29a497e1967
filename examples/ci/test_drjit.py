"""What Dr.Jit compiles, against numpy."""

import drjit as dr
import numpy as np
from drjit.cuda.ad import Array3f, Float, UInt32


def test_gather_and_reduce():
    x = dr.arange(Float, 100)
    y = dr.gather(Float, x, UInt32(99) - dr.arange(UInt32, 100))
    assert dr.sum(x * y)[0] == np.sum(np.arange(100.0) * np.arange(100.0)[::-1])


def test_gradient():
    x = Array3f(1, 2, 3)
    dr.enable_grad(x)
    dr.backward(dr.squared_norm(x))
    np.testing.assert_allclose(np.array(dr.grad(x)).ravel(), [2, 4, 6])
