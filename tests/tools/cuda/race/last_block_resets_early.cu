// The last block sets the counter back for the next launch; any other block must not.
//
// RUN: --grid 4 --block 1 --arg u32[4] --arg u32[1] --arg u32[1]
// FIND: race-atomic | race-atomic race-write-write
extern "C" __global__ void kernel(unsigned* parts, unsigned* count, unsigned* out) {
    parts[blockIdx.x] = blockIdx.x * 3;
    __threadfence();
    unsigned before = atomicAdd(count, 1); // SITE
    if (before == 1) *count = 0; // BUG SITE
    if (before == gridDim.x - 1) {
        __threadfence();
        *out = parts[0] + parts[1] + parts[2] + parts[3];
        *count = 0; // FIX
    }
}
