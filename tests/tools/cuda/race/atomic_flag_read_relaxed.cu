// A message between blocks: the flag is read without an acquire.
//
// RUN: --grid 2 --block 1 --arg u32[2] --arg u32[1]
// FIND: race-write-read
#include <cuda/atomic>

extern "C" __global__ void kernel(unsigned* message, unsigned* out) {
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> flag(message[1]);
    if (blockIdx.x == 0) {
        message[0] = 42; // SITE
        flag.store(1, cuda::memory_order_release);
    } else {
        while (!flag.load(cuda::memory_order_relaxed)) {} // BUG
        while (!flag.load(cuda::memory_order_acquire)) {} // FIX
        *out = message[0]; // SITE
    }
}
