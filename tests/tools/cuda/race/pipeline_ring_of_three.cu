// A ring of three stages by the primitives of pipelines, which waits for one group too few.
//
// RUN: --block 32 --arg u32[192]=5 --arg u32[192]
// FIND: race-write-read copy-not-awaited
#include <cuda_pipeline.h>

extern "C" __global__ void kernel(const unsigned* in, unsigned* out) {
    __shared__ unsigned stage[3][32];
    unsigned t = threadIdx.x;
    for (unsigned i = 0; i < 2; i++) {
        __pipeline_memcpy_async(&stage[i][t], &in[i * 32 + t], 4); // SITE
        __pipeline_commit();
    }
#pragma unroll 1
    for (unsigned i = 0; i < 6; i++) {
        if (i + 2 < 6) __pipeline_memcpy_async(&stage[(i + 2) % 3][t], &in[(i + 2) * 32 + t], 4); // SITE
        __pipeline_commit();
        __pipeline_wait_prior(3); // BUG
        __pipeline_wait_prior(2); // FIX
        __syncthreads();
        out[i * 32 + t] = stage[i % 3][31 - t] + stage[i % 3][t]; // SITE
        __syncthreads();
    }
}
