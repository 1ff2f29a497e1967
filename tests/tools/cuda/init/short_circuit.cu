// The value decides only where the index is good: `&&` may be one predicate of both.
//
// RUN: --block 32 --arg u32[32] --arg 20
// FIND: uninitialized
extern "C" __global__ void kernel(unsigned* out, unsigned n) {
    __shared__ unsigned values[32];
    unsigned t = threadIdx.x;
    if (t < n) values[t] = t;
    __syncwarp();
    unsigned x = values[t]; // SITE
    bool good = t < n && x > 5; // FIX
    bool good = t <= n && x > 5; // BUG
    if (good) out[t] = x; // SITE
}
