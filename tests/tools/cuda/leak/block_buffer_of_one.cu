// One thread allocates for the block; none gives it back, since the pointer was overwritten.
//
// RUN: --block 32 --arg u32[32]
// FIND: device-leak
extern "C" __global__ void kernel(unsigned* out) {
    __shared__ unsigned* buffer;
    unsigned t = threadIdx.x;
    if (t == 0) buffer = (unsigned*)malloc(128); // SITE
    __syncthreads();
    if (!buffer) return;
    buffer[t] = t;
    __syncthreads();
    out[t] = buffer[31 - t];
    __syncthreads();
    if (t == 0) buffer = nullptr; // BUG
    if (t == 0) free(buffer); // FIX
}
