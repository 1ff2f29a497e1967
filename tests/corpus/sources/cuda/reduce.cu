// nvcc: sm_75 sm_80 sm_90 sm_100
// nvrtc: sm_60 sm_80

// Sums over a grid: by shuffles in a warp, through shared memory in a block, by an atomic operation at the end.
template <class T> __device__ T of_warp(T x)
{
    for (int distance = 16; distance > 0; distance /= 2) x += __shfl_down_sync(~0u, x, distance);
    return x;
}

template <class T> __device__ void reduce(const T *x, T *out, int n)
{
    __shared__ T warps[32];
    T sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
    sum = of_warp(sum);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x >= 32) return;
    sum = of_warp(threadIdx.x < blockDim.x / 32 ? warps[threadIdx.x] : T(0));
    if (threadIdx.x == 0) atomicAdd(out, sum);
}

extern "C" __global__ void reduce_f(const float *x, float *out, int n) { reduce(x, out, n); }
extern "C" __global__ void reduce_d(const double *x, double *out, int n) { reduce(x, out, n); }
extern "C" __global__ void reduce_i(const int *x, int *out, int n) { reduce(x, out, n); }

// A scan over each warp, plus the lane above, plus the first lane of the half warp.
extern "C" __global__ void scan_up(int *data)
{
    int lane = threadIdx.x % 32, sum = data[threadIdx.x];
    for (int distance = 1; distance < 32; distance *= 2) {
        int below = __shfl_up_sync(~0u, sum, distance);
        if (lane >= distance) sum += below;
    }
    data[threadIdx.x] = sum + __shfl_down_sync(~0u, sum, 1) + __shfl_sync(~0u, sum, 0, 16);
}
