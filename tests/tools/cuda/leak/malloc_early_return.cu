// A thread that finds nothing returns before it gives its memory back.
//
// RUN: --block 32 --arg u32[32]=3 --arg u32[32]
// FIND: device-leak
extern "C" __global__ void kernel(const unsigned* in, unsigned* out) {
    unsigned t = threadIdx.x;
    unsigned* own = (unsigned*)malloc(16); // SITE
    if (!own) return;
    for (unsigned i = 0; i < 4; i++) own[i] = in[(t + i) % 32] + t;
    if (own[1] % 4 == 0) {
        free(own); // FIX
        return;
    }
    out[t] = own[2];
    free(own);
}
