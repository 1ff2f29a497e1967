// The last warp is not whole: lanes that do not exist are read.
//
// RUN: --block 48 --arg u32[48]
// FIND: inactive-lane
extern "C" __global__ void kernel(unsigned* out) {
    unsigned t = threadIdx.x, mask = __ballot_sync(__activemask(), 1);
    unsigned other = __shfl_down_sync(mask, t, 4); // BUG SITE
    unsigned other = __shfl_down_sync(mask, t, 4, 16); // FIX
    out[t] = other;
}
