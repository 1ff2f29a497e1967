// A block loads through a pipeline, and computes before the stage is there.
//
// RUN: --block 64 --arg u32[64]=5 --arg u32[64]
// FIND: race-write-read copy-not-awaited
#include <cooperative_groups.h>
#include <cuda/pipeline>

extern "C" __global__ void kernel(const unsigned* in, unsigned* out) {
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 1> state;
    __shared__ unsigned tile[64];
    auto pipe = cuda::make_pipeline(cooperative_groups::this_thread_block(), &state);
    unsigned t = threadIdx.x;
    pipe.producer_acquire();
    cuda::memcpy_async(&tile[t], &in[t], sizeof(unsigned), pipe); // SITE
    pipe.producer_commit();
    pipe.consumer_wait(); // FIX
    out[t] = tile[63 - t] + tile[t]; // SITE
    pipe.consumer_release();
}
