// The rest of a tile beyond the end: asynchronous copies fill it with zeros if they are told to, or leave it alone.
//
// RUN: --block 32 --arg u32[20]=3 --arg u32[32] --arg 20
// FIND: uninitialized-output
#include <cuda_pipeline.h>

extern "C" __global__ void kernel(const unsigned* in, unsigned* out, unsigned n) {
    __shared__ unsigned tile[32];
    unsigned t = threadIdx.x;
    if (t < n) __pipeline_memcpy_async(&tile[t], &in[t], 4); // BUG
    __pipeline_memcpy_async(&tile[t], &in[t < n ? t : 0], 4, t < n ? 0 : 4); // FIX
    __pipeline_commit();
    __pipeline_wait_prior(0);
    out[t] = tile[t] * 2; // SITE
}
