// The sums of the blocks of an array: sums[b] adds up the 8 * blockDim.x elements that belong to block b.
//
// The block may have any number of whole warps, up to 32.
__device__ float across_warp(float value)
{
    for (int distance = 16; distance > 0; distance /= 2)
        value += __shfl_down_sync(0xffffffffu, value, distance);
    return value;
}

extern "C" __global__ void block_sum(const float* __restrict__ x, unsigned n, float* __restrict__ sums)
{
    __shared__ float partial[32];
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    unsigned first = blockIdx.x * blockDim.x * 8 + threadIdx.x;
    float sum = 0.0f;
    for (unsigned i = 0; i < 8; i++) {
        unsigned at = first + i * blockDim.x;
        if (at < n)
            sum += x[at];
    }
    sum = across_warp(sum);
    if (lane == 0)
        partial[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        sum = across_warp(lane < blockDim.x / 32 ? partial[lane] : 0.0f);
        if (lane == 0)
            sums[blockIdx.x] = sum;
    }
}
