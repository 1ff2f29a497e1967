// Fences of libcu++ around relaxed accesses: one of them reaches the own block only.
//
// RUN: --grid 2 --block 1 --arg u32[2] --arg u32[1]
// FIND: race-write-read
#include <cuda/atomic>

extern "C" __global__ void kernel(unsigned* message, unsigned* out) {
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> flag(message[1]);
    if (blockIdx.x == 0) {
        message[0] = 42; // SITE
        cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_block); // BUG
        cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_device); // FIX
        flag.store(1, cuda::memory_order_relaxed);
    } else {
        while (!flag.load(cuda::memory_order_relaxed)) {}
        cuda::atomic_thread_fence(cuda::memory_order_acquire, cuda::thread_scope_device);
        *out = message[0]; // SITE
    }
}
