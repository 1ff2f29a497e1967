// A stage is given back before it was read, and filled again meanwhile.
//
// RUN: --block 64 --arg u32[256]=5 --arg u32[256]
// FIND: race-write-read
#include <cooperative_groups.h>
#include <cuda/pipeline>

extern "C" __global__ void kernel(const unsigned* in, unsigned* out) {
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 1> state;
    __shared__ unsigned tile[64];
    auto pipe = cuda::make_pipeline(cooperative_groups::this_thread_block(), &state);
    unsigned t = threadIdx.x;
#pragma unroll 1
    for (unsigned i = 0; i < 4; i++) {
        pipe.producer_acquire();
        cuda::memcpy_async(&tile[t], &in[i * 64 + t], sizeof(unsigned), pipe); // SITE
        pipe.producer_commit();
        pipe.consumer_wait();
        pipe.consumer_release(); // BUG
        out[i * 64 + t] = tile[63 - t]; // SITE
        pipe.consumer_release(); // FIX
    }
}
