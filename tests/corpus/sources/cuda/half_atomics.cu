// nvcc: sm_75 sm_90 sm_100
// nvrtc: sm_70
#include <cuda_bf16.h>
#include <cuda_fp16.h>

// Sums of halves by atomic operations; older targets do them by compare-and-swap.
extern "C" __global__ void half_atomics(const __half2 *x, __half2 *pair, __half *one, __nv_bfloat162 *brain)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(pair, x[i]);
    atomicAdd(one, __low2half(x[i]));
    atomicAdd(brain, __floats2bfloat162_rn(__low2float(x[i]), __high2float(x[i])));
}
