// A thread waits for another with `wait`, whose order decides what it may read.
//
// RUN: --block 64 --arg u32[1]
// FIND: race-write-read
#include <cuda/atomic>

extern "C" __global__ void kernel(unsigned* out) {
    __shared__ unsigned flag, value;
    if (threadIdx.x == 0) flag = 0;
    __syncthreads();
    cuda::atomic_ref<unsigned, cuda::thread_scope_block> ref(flag);
    if (threadIdx.x == 0) {
        value = *out + 1; // SITE
        ref.store(1, cuda::memory_order_release);
        ref.notify_all();
    } else if (threadIdx.x == 32) {
        ref.wait(0, cuda::memory_order_relaxed); // BUG
        ref.wait(0, cuda::memory_order_acquire); // FIX
        *out = value; // SITE
    }
}
