// The completion of a phase adds up what all wrote; the sum is read before the phase is complete.
//
// RUN: --block 64 --arg u32[64]
// FIND: race-write-read
#include <cuda/barrier>
#pragma nv_diag_suppress static_var_with_dynamic_init

__shared__ unsigned values[64], sum;
struct Sum {
    __device__ void operator()() noexcept {
        sum = 0;
        for (unsigned value : values) sum += value; // SITE
    }
};

extern "C" __global__ void kernel(unsigned* out) {
    __shared__ cuda::barrier<cuda::thread_scope_block, Sum> bar;
    unsigned t = threadIdx.x;
    if (t == 0) init(&bar, 64, Sum());
    __syncthreads();
    values[t] = t;
    auto token = bar.arrive();
    out[t] = sum; // BUG SITE
    bar.wait(std::move(token));
    out[t] = sum; // FIX
}
