// The ring fills a stage again that slow warps still read: the barrier at the end of the turn is left out.
//
// RUN: --block 64 --arg u32[384]=5 --arg u32[384]
// FIND: race-write-read
#include <cuda_pipeline.h>

extern "C" __global__ void kernel(const unsigned* in, unsigned* out) {
    __shared__ unsigned stage[2][64];
    unsigned t = threadIdx.x;
    __pipeline_memcpy_async(&stage[0][t], &in[t], 4); // SITE
    __pipeline_commit();
#pragma unroll 1
    for (unsigned i = 0; i < 6; i++) {
        if (i + 1 < 6) __pipeline_memcpy_async(&stage[(i + 1) % 2][t], &in[(i + 1) * 64 + t], 4); // SITE
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        out[i * 64 + t] = stage[i % 2][63 - t]; // SITE
        __syncthreads(); // FIX
    }
}
