// nvcc: sm_75 sm_80 sm_100
#include <cuda_fp16.h>

// All comparisons of pairs of halves, as masks.
extern "C" __global__ void half2_mask(const __half2 *a, const __half2 *b, unsigned *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    __half2 x = a[i], y = b[i];
    unsigned *to = out + 12 * i;
    to[0] = __heq2_mask(x, y);
    to[1] = __hne2_mask(x, y);
    to[2] = __hle2_mask(x, y);
    to[3] = __hge2_mask(x, y);
    to[4] = __hlt2_mask(x, y);
    to[5] = __hgt2_mask(x, y);
    to[6] = __hequ2_mask(x, y);
    to[7] = __hneu2_mask(x, y);
    to[8] = __hleu2_mask(x, y);
    to[9] = __hgeu2_mask(x, y);
    to[10] = __hltu2_mask(x, y);
    to[11] = __hgtu2_mask(x, y);
}
