// Consumers keep the only stage of a pipeline; its producers wait for it for ever.
//
// RUN: --block 64 --arg u32[64]=5 --arg u32[64]
// FIND: deadlock
#include <cooperative_groups.h>
#include <cuda/pipeline>

extern "C" __global__ void kernel(const unsigned* in, unsigned* out) {
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 1> state;
    __shared__ unsigned tile[32];
    bool produces = threadIdx.x < 32;
    auto role = produces ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
    auto pipe = cuda::make_pipeline(cooperative_groups::this_thread_block(), &state, role);
    unsigned t = threadIdx.x % 32;
#pragma unroll 1
    for (unsigned i = 0; i < 2; i++) {
        if (produces) {
            pipe.producer_acquire(); // SITE
            tile[t] = in[i * 32 + t];
            pipe.producer_commit();
        } else {
            pipe.consumer_wait(); // SITE
            out[i * 32 + t] = tile[31 - t];
            pipe.consumer_release(); // FIX
        }
    }
}
