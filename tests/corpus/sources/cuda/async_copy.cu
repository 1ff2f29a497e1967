// nvcc: sm_80 sm_90 sm_100
#include <cuda_pipeline.h>

// Copies to shared memory that the next round waits for, two stages deep: a moving sum over tiles.
extern "C" __global__ void async_copy(const float4 *in, float *out, int tiles)
{
    __shared__ float4 stage[2][128];
    int i = threadIdx.x;
    float sum = 0;
    __pipeline_memcpy_async(&stage[0][i], &in[i], sizeof(float4));
    __pipeline_commit();
    for (int tile = 0; tile < tiles; tile++) {
        if (tile + 1 < tiles) __pipeline_memcpy_async(&stage[(tile + 1) % 2][i], &in[(tile + 1) * 128 + i], sizeof(float4), i % 32 == 31 ? 8 : 0);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        float4 v = stage[tile % 2][127 - i];
        sum += v.x + v.y + v.z + v.w;
        __syncthreads();
    }
    out[i] = sum;
}
