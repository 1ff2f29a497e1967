// The copy is bound to the barrier object by a thread that has arrived already: it counts for the next phase.
//
// RUN: --block 64 --arg u32[64]=3 --arg u32[64]
// FIND: race-write-read
#include <cuda/barrier>
#pragma nv_diag_suppress static_var_with_dynamic_init

extern "C" __global__ void kernel(const unsigned* in, unsigned* out) {
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    __shared__ unsigned tile[64];
    unsigned t = threadIdx.x;
    if (t == 0) init(&bar, 64);
    __syncthreads();
    cuda::memcpy_async(&tile[t], &in[t], sizeof(unsigned), bar); // FIX
    auto token = bar.arrive();
    cuda::memcpy_async(&tile[t], &in[t], sizeof(unsigned), bar); // BUG SITE
    bar.wait(std::move(token));
    out[t] = tile[t ^ 32]; // SITE
}
