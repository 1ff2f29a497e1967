// Each thread allocates a buffer, and those of the second warp forget it.
//
// RUN: --block 64 --arg u32[64]
// FIND: device-leak
extern "C" __global__ void kernel(unsigned* out) {
    unsigned t = threadIdx.x;
    unsigned* own = (unsigned*)malloc(32); // SITE
    if (!own) return;
    for (unsigned i = 0; i < 8; i++) own[i] = i * t;
    out[t] = own[t % 8];
    if (t < 32) free(own); // BUG
    free(own); // FIX
}
