"""CuPy's own kernels, and one of C++, against numpy."""

import cupy
import numpy as np


def test_arrays():
    x = cupy.linspace(0, 1, 1000, dtype=cupy.float32)
    np.testing.assert_allclose(cupy.asnumpy(cupy.sqrt(x) + 2 * x), np.sqrt(x.get()) + 2 * x.get(), rtol=1e-6)


def test_kernel_of_c():
    source = """extern "C" __global__ void triple(const float *x, float *y, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) y[i] = 3 * x[i];
    }"""
    x, y = cupy.arange(1000, dtype=cupy.float32), cupy.empty(1000, cupy.float32)
    cupy.RawKernel(source, "triple")((8,), (128,), (x, y, np.int32(1000)))
    np.testing.assert_array_equal(cupy.asnumpy(y), 3 * np.arange(1000))
