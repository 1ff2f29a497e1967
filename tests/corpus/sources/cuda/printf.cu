// nvcc: sm_75 sm_90
#include <cassert>
#include <cstdio>

extern "C" __global__ void print(const int *x, const double *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    printf("thread %d of block %u: %5d %08x %lld %c\n", threadIdx.x, blockIdx.x, x[i], x[i], (long long)x[i] << 20, 'a' + i % 26);
    if (y[i] > 0) printf("%s %g %.3f %e%%\n", i % 2 ? "odd" : "even", y[i], y[i], (float)y[i]);
    assert(x[i] != 12345);
}
