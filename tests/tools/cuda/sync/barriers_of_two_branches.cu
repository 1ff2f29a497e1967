// Both sides of a branch have a barrier: within a warp they are not the same one.
//
// RUN: --block 32 --arg u32[32]
// FIND: divergent-barrier
extern "C" __global__ void kernel(unsigned* out) {
    __shared__ unsigned values[32];
    unsigned t = threadIdx.x;
    if (t % 2) {
        values[t] = t;
        __syncthreads(); // BUG SITE
        out[t] = values[t] + 1;
    } else {
        values[t] = t * 2;
        __syncthreads(); // BUG SITE
        out[t] = values[t] + 2;
    }
}
