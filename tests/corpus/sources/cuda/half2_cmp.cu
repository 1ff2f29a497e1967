// nvcc: sm_75 sm_80 sm_100
// nvrtc: sm_53 sm_80
#include <cuda_fp16.h>

// All comparisons of pairs of halves: as numbers added up, and as flags of both.
extern "C" __global__ void half2_cmp(const __half2 *a, const __half2 *b, __half2 *count, unsigned *flags)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    __half2 x = a[i], y = b[i];
    __half2 sum = __hadd2(__hlt2(x, y), __hle2(x, y));
    sum = __hadd2(sum, __hadd2(__hgt2(x, y), __hge2(x, y)));
    sum = __hadd2(sum, __hadd2(__heq2(x, y), __hne2(x, y)));
    sum = __hadd2(sum, __hadd2(__hltu2(x, y), __hleu2(x, y)));
    sum = __hadd2(sum, __hadd2(__hgtu2(x, y), __hgeu2(x, y)));
    sum = __hadd2(sum, __hadd2(__hequ2(x, y), __hneu2(x, y)));
    count[i] = __hadd2(sum, __hisnan2(x));
    unsigned bits = __hbeq2(x, y) | __hbne2(x, y) << 1 | __hble2(x, y) << 2 | __hbge2(x, y) << 3;
    bits |= __hblt2(x, y) << 4 | __hbgt2(x, y) << 5 | __hbequ2(x, y) << 6 | __hbneu2(x, y) << 7;
    bits |= __hbleu2(x, y) << 8 | __hbgeu2(x, y) << 9 | __hbltu2(x, y) << 10 | __hbgtu2(x, y) << 11;
    flags[i] = bits;
}
