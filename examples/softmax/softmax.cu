// Softmax of each row of a matrix, one block a row.
//
// The block may have any number of whole warps, up to 32. The greatest value and the sum are found by butterfly
// shuffles within each warp, and across the warps through shared memory.

// 2^x by the hardware's approximate instruction.
__device__ float exp2_approx(float x)
{
    float y;
    asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

struct Max {
    __device__ static float identity() { return -__int_as_float(0x7f800000); }
    __device__ static float combine(float a, float b) { return fmaxf(a, b); }
};

struct Sum {
    __device__ static float identity() { return 0.0f; }
    __device__ static float combine(float a, float b) { return a + b; }
};

template <typename Op>
__device__ float across_warp(float value)
{
    for (int distance = 16; distance > 0; distance /= 2)
        value = Op::combine(value, __shfl_xor_sync(0xffffffffu, value, distance));
    return value;
}

// The combination over all threads of the block, returned to every one of them.
template <typename Op>
__device__ float across_block(float value, float* partial)
{
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    value = across_warp<Op>(value);
    if (lane == 0)
        partial[warp] = value;
    __syncthreads();
    value = lane < blockDim.x / 32 ? partial[lane] : Op::identity();
    value = across_warp<Op>(value);
    __syncthreads();
    return value;
}

extern "C" __global__ void softmax(const float* __restrict__ input, float* __restrict__ output, unsigned columns)
{
    __shared__ float partial[32];
    const float* in = input + (size_t)blockIdx.x * columns;
    float* out = output + (size_t)blockIdx.x * columns;

    float greatest = Max::identity();
    for (unsigned i = threadIdx.x; i < columns; i += blockDim.x)
        greatest = Max::combine(greatest, in[i]);
    greatest = across_block<Max>(greatest, partial);

    float sum = 0.0f;
    for (unsigned i = threadIdx.x; i < columns; i += blockDim.x)
        sum += exp2_approx((in[i] - greatest) * 1.44269504f);
    sum = across_block<Sum>(sum, partial);

    for (unsigned i = threadIdx.x; i < columns; i += blockDim.x)
        out[i] = exp2_approx((in[i] - greatest) * 1.44269504f) / sum;
}
