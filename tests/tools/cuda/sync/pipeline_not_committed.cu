// The last batch is not committed, so that waiting for all that is committed does not reach it.
//
// RUN: --block 32 --arg u32[64]=3 --arg u32[32]
// FIND: copy-not-awaited
#include <cuda_pipeline.h>

extern "C" __global__ void kernel(const unsigned* in, unsigned* out) {
    __shared__ unsigned values[64];
    unsigned t = threadIdx.x;
    __pipeline_memcpy_async(&values[t], &in[t], 4);
    __pipeline_commit();
    __pipeline_memcpy_async(&values[t + 32], &in[t + 32], 4); // SITE
    __pipeline_commit(); // FIX
    __pipeline_wait_prior(0);
    out[t] = values[t] + values[t + 32]; // SITE
}
