// Values are exchanged twice over the same temporary storage.
//
// RUN: --block 64 --arg u32[256]=3 --arg u32[256]
// FIND: race-write-read
#include <cub/block/block_exchange.cuh>

extern "C" __global__ void kernel(const unsigned* in, unsigned* out) {
    using Exchange = cub::BlockExchange<unsigned, 64, 4>;
    __shared__ Exchange::TempStorage storage;
    unsigned t = threadIdx.x, items[4];
    for (int i = 0; i < 4; i++) items[i] = in[t * 4 + i] + t;
    Exchange(storage).BlockedToStriped(items); // SITE
    for (int i = 0; i < 4; i++) items[i] += i;
    __syncthreads(); // FIX
    Exchange(storage).BlockedToStriped(items); // SITE
    for (int i = 0; i < 4; i++) out[t * 4 + i] = items[i];
}
