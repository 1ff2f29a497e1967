#ifdef RELOCATABLE
__device__ __noinline__ float change(float x) { return 3 * x; }
#else
static __device__ __noinline__ float change(float x) { return 3 * x; }
#endif

__global__ void scale(float *y) { y[threadIdx.x] = change(y[threadIdx.x]); }
