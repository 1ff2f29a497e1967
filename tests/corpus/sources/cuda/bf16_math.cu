// nvcc: sm_80 sm_90 sm_100
// nvrtc: sm_80
#include <cuda_bf16.h>

// Arithmetic of bf16 and of pairs, conversions and functions.
extern "C" __global__ void bf16_math(const __nv_bfloat162 *a, const __nv_bfloat162 *b, __nv_bfloat162 *out, float *floats)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    __nv_bfloat162 x = a[i], y = b[i];
    __nv_bfloat162 sum = __hfma2_relu(x, y, __hadd2(x, y));
    sum = __hmax2(__hsub2(sum, y), __hmin2_nan(x, y));
    out[i] = __hmul2(sum, __floats2bfloat162_rn(0.5f, 2.0f));
    float2 wide = __bfloat1622float2(sum);
    floats[i] = wide.x + wide.y + __bfloat162float(hsqrt(__habs(__low2bfloat16(x)))) + __bfloat162int_rz(__high2bfloat16(y));
}
