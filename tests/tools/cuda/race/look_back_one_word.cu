// Value and flag in one word of eight bytes need no order of their own; in two words they do.
//
// RUN: --grid 4 --block 1 --arg u64[4] --arg u32[4]
// FIND: race-write-read
#include <cuda/atomic>

extern "C" __global__ void kernel(unsigned long long* states, unsigned* out) {
    unsigned b = blockIdx.x, before = 0;
    if (b > 0) { // FIX
        cuda::atomic_ref<unsigned long long, cuda::thread_scope_device> state(states[b - 1]); // FIX
        unsigned long long seen = 0; // FIX
        while (!(seen >> 32)) seen = state.load(cuda::memory_order_relaxed); // FIX
        before = (unsigned)seen; // FIX
    } // FIX
    cuda::atomic_ref<unsigned long long, cuda::thread_scope_device> own(states[b]); // FIX
    own.store(1ull << 32 | (before + b + 1), cuda::memory_order_relaxed); // FIX
    unsigned* words = (unsigned*)states; // BUG
    if (b > 0) { // BUG
        cuda::atomic_ref<unsigned, cuda::thread_scope_device> flag(words[b * 2 - 1]); // BUG
        while (!flag.load(cuda::memory_order_relaxed)) {} // BUG
        before = words[b * 2 - 2]; // BUG SITE
    } // BUG
    words[b * 2] = before + b + 1; // BUG SITE
    cuda::atomic_ref<unsigned, cuda::thread_scope_device>(words[b * 2 + 1]).store(1, cuda::memory_order_relaxed); // BUG
    out[b] = before;
}
