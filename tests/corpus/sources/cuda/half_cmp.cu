// nvcc: sm_75 sm_80 sm_100
// nvrtc: sm_53 sm_80
#include <cuda_fp16.h>

// All comparisons of halves, one bit each.
extern "C" __global__ void half_cmp(const __half *a, const __half *b, unsigned *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __half x = a[i], y = b[i];
    bool flags[] = {__hlt(x, y),  __hle(x, y),  __hgt(x, y),  __hge(x, y),  __heq(x, y),  __hne(x, y), __hltu(x, y),
                    __hleu(x, y), __hgtu(x, y), __hgeu(x, y), __hequ(x, y), __hneu(x, y), __hisnan(x), __hisinf(x) != 0};
    unsigned bits = 0;
#pragma unroll
    for (int k = 0; k < 14; k++) bits |= (unsigned)flags[k] << k;
    out[i] = bits;
}
