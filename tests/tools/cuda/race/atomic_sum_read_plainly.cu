// Blocks add to a sum with atomic operations; a thread reads it with a plain load meanwhile.
//
// RUN: --grid 2 --block 32 --arg u32[1] --arg u32[2]
// FIND: race-atomic
#include <cuda/atomic>

extern "C" __global__ void kernel(unsigned* sum, unsigned* out) {
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> ref(*sum);
    unsigned before = ref.fetch_add(threadIdx.x, cuda::memory_order_relaxed); // SITE
    if (threadIdx.x == 0) out[blockIdx.x] = *sum; // BUG SITE
    if (threadIdx.x == 0) out[blockIdx.x] = ref.load(cuda::memory_order_relaxed); // FIX
    if (before == 0xffffffff) out[0] = 0;
}
