// A number for all is written again before all have read the first.
//
// RUN: --block 64 --arg u32[4]=5 --arg u32[256]
// FIND: race-write-read
extern "C" __global__ void kernel(const unsigned* in, unsigned* out) {
    __shared__ unsigned value;
    unsigned t = threadIdx.x;
#pragma unroll 1
    for (unsigned i = 0; i < 4; i++) {
        if (t == 0) value = in[i] + i; // SITE
        __syncthreads();
        out[i * 64 + t] = value; // SITE
        __syncthreads(); // FIX
    }
}
