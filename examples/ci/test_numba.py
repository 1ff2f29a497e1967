"""Kernels of numba against numpy."""

import numpy as np
from numba import cuda, float32


@cuda.jit
def block_sums(x, sums):
    shared = cuda.shared.array(128, float32)
    thread = cuda.threadIdx.x
    shared[thread] = x[cuda.grid(1)]
    cuda.syncthreads()
    distance = 64
    while distance > 0:
        if thread < distance:
            shared[thread] += shared[thread + distance]
        cuda.syncthreads()
        distance //= 2
    if thread == 0:
        sums[cuda.blockIdx.x] = shared[0]


def test_sums():
    x, sums = np.arange(1024, dtype=np.float32), np.zeros(8, np.float32)
    block_sums[8, 128](x, sums)
    np.testing.assert_array_equal(sums, x.reshape(8, 128).sum(1))
