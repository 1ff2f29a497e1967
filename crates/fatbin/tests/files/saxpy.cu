// In relocatable.so the function is that of scale.cu, else one that is private to this file.
#ifdef RELOCATABLE
__device__ float change(float x);
#else
static __device__ __noinline__ float change(float x) { return x + 1; }
#endif

__global__ void saxpy(float a, const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = a * x[i] + change(y[i]);
}
