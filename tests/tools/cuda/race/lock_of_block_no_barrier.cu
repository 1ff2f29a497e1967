// Thread 0 takes a lock for its block; the others do not wait for it.
//
// RUN: --grid 2 --block 64 --arg u32[1] --arg u32[64]
// FIND: race-write-read race-write-write
#include <cuda/atomic>

extern "C" __global__ void kernel(unsigned* lock, unsigned* sums) {
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> ref(*lock);
    if (threadIdx.x == 0)
        while (ref.exchange(1, cuda::memory_order_acquire)) {}
    __syncthreads(); // FIX
    sums[threadIdx.x] += blockIdx.x; // SITE
    __syncthreads();
    if (threadIdx.x == 0) ref.store(0, cuda::memory_order_release);
}
