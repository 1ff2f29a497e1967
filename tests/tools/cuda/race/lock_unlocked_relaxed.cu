// A lock by compare and exchange, which is given back without a release.
//
// RUN: --grid 3 --block 1 --arg u32[1] --arg u32[1]
// FIND: race-write-read race-write-write
#include <cuda/atomic>

extern "C" __global__ void kernel(unsigned* lock, unsigned* sum) {
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> ref(*lock);
    unsigned open = 0;
    while (!ref.compare_exchange_weak(open, 1, cuda::memory_order_acquire, cuda::memory_order_relaxed)) open = 0;
    *sum += blockIdx.x + 1; // SITE
    ref.store(0, cuda::memory_order_relaxed); // BUG
    ref.store(0, cuda::memory_order_release); // FIX
}
