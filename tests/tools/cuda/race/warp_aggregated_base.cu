// Lanes reserve places with one atomic operation; its result goes through shared memory without a barrier of the warp.
//
// RUN: --block 32 --arg u32[32] --arg u32[1]
// FIND: race-write-read
extern "C" __global__ void kernel(unsigned* out, unsigned* count) {
    __shared__ unsigned base;
    unsigned t = threadIdx.x;
    bool wanted = t % 3 == 0;
    unsigned mask = __ballot_sync(0xffffffff, wanted);
    if (t == 0) base = atomicAdd(count, __popc(mask)); // SITE
    __syncwarp(); // FIX
    if (wanted) out[base + __popc(mask & ((1u << t) - 1))] = t; // SITE
}
