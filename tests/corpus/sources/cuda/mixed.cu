// nvcc: sm_80 sm_90 sm_100
#include <cuda_fp16.h>

// Halves added to floats: sm_100 has instructions for it. `c` holds 96 floats, of which the first 32 are read.
extern "C" __global__ void mixed(const __half *a, const __half *b, float *c)
{
    int i = threadIdx.x;
    float x = __half2float(a[i]), y = __half2float(b[i]);
    float sum = c[i] + x;
    c[i] = sum;
    c[32 + i] = __fmaf_rn(x, y, sum);
    c[64 + i] = sum - y;
}

// A sum over each warp by a butterfly that is not unrolled, and a ballot, which is 0 or -1.
extern "C" __global__ void shfl(int *x)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, sum = x[i];
#pragma unroll 1
    for (int mask = 16; mask > 0; mask /= 2) sum += __shfl_xor_sync(~0u, sum, mask);
    x[i] = sum + (int)__ballot_sync(~0u, sum > 3);
}
