// nvcc: sm_80 sm_90 sm_100
// nvrtc: sm_90
#include <cuda_fp8.h>

// To formats of 8 bits and back; sm_89 and later have instructions for it.
extern "C" __global__ void fp8(const float2 *x, unsigned short *e4m3, unsigned short *e5m2, float2 *back)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    __nv_fp8x2_e4m3 a(x[i]);
    __nv_fp8x2_e5m2 b(x[i]);
    e4m3[i] = a.__x;
    e5m2[i] = b.__x;
    float2 p = (float2)a, q = (float2)b;
    back[i] = make_float2(p.x + q.x, p.y + q.y);
}
