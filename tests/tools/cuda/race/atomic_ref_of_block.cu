// A counter of the grid by a reference whose scope is the block.
//
// RUN: --grid 2 --block 32 --arg u32[1]
// FIND: race-scope
#include <cuda/atomic>

extern "C" __global__ void kernel(unsigned* out) {
    cuda::atomic_ref<unsigned, cuda::thread_scope_block> count(*out); // BUG
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> count(*out); // FIX
    count.fetch_add(threadIdx.x, cuda::memory_order_relaxed); // SITE
}
