// A thread reads its own copy before its pipeline has waited.
//
// RUN: --block 32 --arg u32[32]=3 --arg u32[32]
// FIND: copy-not-awaited
#include <cuda_pipeline.h>

extern "C" __global__ void kernel(const unsigned* in, unsigned* out) {
    __shared__ unsigned values[32];
    unsigned t = threadIdx.x;
    __pipeline_memcpy_async(&values[t], &in[t], 4); // SITE
    __pipeline_commit();
    __pipeline_wait_prior(0); // FIX
    out[t] = values[t] + 1; // SITE
}
