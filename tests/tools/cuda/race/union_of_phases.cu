// Two phases use the same shared memory under different types, without a barrier between them.
//
// RUN: --block 64 --arg u32[64]
// FIND: race-write-read
extern "C" __global__ void kernel(unsigned* out) {
    __shared__ union {
        unsigned words[64];
        float numbers[64];
    } memory;
    unsigned t = threadIdx.x;
    memory.words[t] = t;
    __syncthreads();
    unsigned w = memory.words[63 - t]; // SITE
    __syncthreads(); // FIX
    memory.numbers[t] = w * 0.5f; // SITE
    __syncthreads();
    out[t] = memory.numbers[t ^ 32];
}
