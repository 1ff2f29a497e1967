// Whether anything has changed: all threads that know set the same flag.
//
// RUN: --block 64 --arg u32[64]=1 --arg u32[1]
// FIND: race-same-value
extern "C" __global__ void kernel(const unsigned* in, unsigned* out) {
    __shared__ unsigned changed; // BUG
    if (threadIdx.x == 0) changed = 0; // BUG
    __syncthreads(); // BUG
    if (in[threadIdx.x] == 1) changed = 1; // BUG SITE
    __syncthreads(); // BUG
    unsigned any = changed; // BUG
    unsigned any = __syncthreads_or(in[threadIdx.x] == 1); // FIX
    if (threadIdx.x == 0) *out = any;
}
