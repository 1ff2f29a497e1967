// Lanes with the same key find each other; the first of them counts for all, and the others read what it has written.
//
// RUN: --block 32 --arg u32[32]
// FIND: race-write-read
extern "C" __global__ void kernel(unsigned* out) {
    __shared__ unsigned counts[8];
    unsigned t = threadIdx.x, key = t * t % 8;
    unsigned peers = __match_any_sync(0xffffffff, key);
    if (__ffs(peers) - 1 == t) counts[key] = __popc(peers); // SITE
    __syncwarp(peers); // FIX
    out[t] = counts[key]; // SITE
}
