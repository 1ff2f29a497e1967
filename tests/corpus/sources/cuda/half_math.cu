// nvcc: sm_75 sm_80 sm_100
// nvrtc: sm_53 sm_80
#include <cuda_fp16.h>

// Arithmetic of halves and of pairs of them, each operation rounded.
extern "C" __global__ void half_arith(const __half2 *a, const __half2 *b, __half2 *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    __half2 x = a[i], y = b[i];
    __half2 sum = __hadd2_rn(__hmul2_rn(x, y), __hsub2(x, y));
    sum = __hfma2(x, y, sum);
    sum = __hadd2_sat(sum, __hneg2(__habs2(y)));
    out[i] = __halves2half2(__hadd(__low2half(sum), __high2half(x)), __hfma_sat(__high2half(sum), __low2half(x), __low2half(y)));
}

// Functions of halves, and conversions.
extern "C" __global__ void half_functions(const __half *a, __half *out, int *ints)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    __half x = a[i];
    __half sum = hsqrt(__habs(x)) + hrcp(x) + hexp(x) + hlog(__habs(x)) + hsin(x) + hcos(x) + hfloor(x) + htrunc(x) + hrint(x);
    out[i] = sum / __float2half_rn(3.0f) + __hmax(x, sum) - __hmin(x, sum);
    ints[i] = __half2int_rz(x) + __half2ushort_rn(__habs(x)) + __half_as_short(x) + __half2ll_rd(x);
}
