// One warp produces, the other consumes; the producers do not acquire the stage that they fill again.
//
// RUN: --block 64 --arg u32[128]=5 --arg u32[128]
// FIND: race-write-read | deadlock
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
    for (unsigned i = 0; i < 4; i++) {
        if (produces) {
            if (i == 0) pipe.producer_acquire(); // BUG STOP
            pipe.producer_acquire(); // FIX
            tile[t] = in[i * 32 + t]; // SITE
            pipe.producer_commit();
        } else {
            pipe.consumer_wait(); // STOP
            out[i * 32 + t] = tile[31 - t]; // SITE
            pipe.consumer_release();
        }
    }
}
