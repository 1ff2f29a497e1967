// Two threads give the same memory back.
//
// RUN: --block 64 --arg u32[1]
// FIND: invalid-free
extern "C" __global__ void kernel(unsigned* out) {
    __shared__ unsigned* buffer;
    unsigned t = threadIdx.x;
    if (t == 0) buffer = (unsigned*)malloc(64);
    __syncthreads();
    if (!buffer) return;
    if (t == 0) buffer[3] = 5, *out = buffer[3];
    __syncthreads();
    if (t % 32 == 0) free(buffer); // BUG SITE
    if (t == 0) free(buffer); // FIX
}
