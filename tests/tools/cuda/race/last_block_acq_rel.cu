// A block counts itself with an atomic operation of libcu++; relaxed, it orders nothing.
//
// RUN: --grid 4 --block 1 --arg u32[4] --arg u32[1] --arg u32[1]
// FIND: race-write-read
#include <cuda/atomic>

extern "C" __global__ void kernel(unsigned* parts, unsigned* count, unsigned* out) {
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> ref(*count);
    parts[blockIdx.x] = blockIdx.x * 3; // SITE
    unsigned before = ref.fetch_add(1, cuda::memory_order_relaxed); // BUG
    unsigned before = ref.fetch_add(1, cuda::memory_order_acq_rel); // FIX
    if (before == gridDim.x - 1) *out = parts[0] + parts[1] + parts[2] + parts[3]; // SITE
}
