// nvcc: sm_80 sm_90 sm_100
// nvrtc: sm_90
#include <cuda_bf16.h>

// Comparisons of bf16, one bit each.
extern "C" __global__ void bf16_cmp(const __nv_bfloat16 *a, const __nv_bfloat16 *b, unsigned *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __nv_bfloat16 x = a[i], y = b[i];
    bool flags[] = {__hlt(x, y), __hle(x, y),  __hgt(x, y),  __hge(x, y), __heq(x, y),
                    __hne(x, y), __hltu(x, y), __hneu(x, y), __hisnan(x)};
    unsigned bits = 0;
#pragma unroll
    for (int k = 0; k < 9; k++) bits |= (unsigned)flags[k] << k;
    out[i] = bits;
}

// Pairs: what is equal or is not, masks, and what holds of both.
extern "C" __global__ void bf162_cmp(const __nv_bfloat162 *a, const __nv_bfloat162 *b, __nv_bfloat162 *ones, unsigned *masks, unsigned *both)
{
    int i = threadIdx.x;
    __nv_bfloat162 x = a[i], y = b[i];
    ones[i] = __hadd2(__heq2(x, y), __hneu2(x, y));
    masks[i] = __heq2_mask(x, y) ^ __hltu2_mask(x, y);
    both[i] = __hbequ2(x, y) + __hblt2(x, y);
}
