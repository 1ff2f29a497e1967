// A barrier of each half of a warp does not order what the halves exchange.
//
// RUN: --block 32 --arg u32[32]
// FIND: race-write-read
extern "C" __global__ void kernel(unsigned* out) {
    __shared__ unsigned tile[32];
    unsigned t = threadIdx.x;
    tile[t] = t; // SITE
    __syncwarp(t < 16 ? 0x0000ffff : 0xffff0000); // BUG
    __syncwarp(); // FIX
    out[t] = tile[31 - t]; // SITE
}
