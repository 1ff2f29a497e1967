// A vote is taken on values that were not written for the last lanes.
//
// RUN: --block 32 --arg u32[32]
// FIND: uninitialized uninitialized-output | uninitialized-output | uninitialized
extern "C" __global__ void kernel(unsigned* out) {
    __shared__ unsigned values[32];
    unsigned t = threadIdx.x;
    if (t < 30) values[t] = t; // BUG
    values[t] = t; // FIX
    __syncwarp();
    unsigned votes = __ballot_sync(0xffffffff, values[t] > 9); // SITE
    out[t] = votes; // SITE
}
