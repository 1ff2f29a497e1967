// Two stages of a pipeline: the one that is being filled is read instead of the one that was awaited.
//
// RUN: --block 32 --arg u32[128]=5 --arg u32[128]
// FIND: race-write-read copy-not-awaited
#include <cooperative_groups.h>
#include <cuda/pipeline>

extern "C" __global__ void kernel(const unsigned* in, unsigned* out) {
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    __shared__ unsigned stage[2][32];
    auto pipe = cuda::make_pipeline(cooperative_groups::this_thread_block(), &state);
    unsigned t = threadIdx.x, filled = 0;
#pragma unroll 1
    for (unsigned i = 0; i < 4; i++) {
        for (; filled < 4 && filled < i + 2; filled++) {
            pipe.producer_acquire();
            cuda::memcpy_async(&stage[filled % 2][t], &in[filled * 32 + t], sizeof(unsigned), pipe); // SITE
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        unsigned k = (i + 1) % 2; // BUG
        unsigned k = i % 2; // FIX
        out[i * 32 + t] = stage[k][31 - t] + stage[k][t]; // SITE
        pipe.consumer_release();
    }
}
