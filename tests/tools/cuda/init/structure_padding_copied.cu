// A structure with padding is copied as a whole: the padding may be anything, a field may not.
//
// RUN: --block 32 --arg u32[64]
// FIND: uninitialized-output
struct alignas(8) Entry {
    unsigned char kind;
    unsigned value;
};

extern "C" __global__ void kernel(Entry* out) {
    __shared__ Entry entries[32];
    unsigned t = threadIdx.x;
    entries[t].kind = t;
    entries[t].value = t * 5; // FIX
    __syncthreads();
    out[t] = entries[31 - t]; // SITE
}
