// A work list is filled with atomic places; its entries are read behind the atomic counter only.
//
// RUN: --grid 2 --block 32 --arg u32[64] --arg u32[1] --arg u32[64]
// FIND: race-write-read
extern "C" __global__ void kernel(unsigned* list, unsigned* count, unsigned* out) {
    unsigned place = atomicAdd(count, 1);
    list[place] = place + 1; // SITE
    __syncthreads();
    if (place > 0) out[place] = list[place - 1]; // BUG SITE
    if (place > 0) out[place] = list[place]; // FIX
}
