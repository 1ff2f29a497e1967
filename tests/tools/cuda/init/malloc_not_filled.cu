// Memory of device malloc is read before it is written; calloc's meaning has to be made by hand.
//
// RUN: --block 32 --arg u32[32]
// FIND: uninitialized-output
extern "C" __global__ void kernel(unsigned* out) {
    unsigned t = threadIdx.x;
    unsigned* own = (unsigned*)malloc(16);
    if (!own) return;
    for (unsigned i = 0; i < 3; i++) own[i] = i; // BUG
    for (unsigned i = 0; i < 4; i++) own[i] = i; // FIX
    out[t] = own[t % 4]; // SITE
    free(own);
}
