// Two arrays in dynamic shared memory: the second begins one element too early.
//
// RUN: --block 32 --shared 264 --arg u32[32]
// FIND: race-write-read
extern "C" __global__ void kernel(unsigned* out) {
    extern __shared__ unsigned memory[];
    unsigned* first = memory;
    unsigned* second = memory + 31; // BUG
    unsigned* second = memory + 32; // FIX
    unsigned t = threadIdx.x;
    first[t] = t;
    __syncthreads();
    second[t] = first[t ^ 1]; // SITE
    __syncthreads();
    out[t] = second[31 - t];
}
