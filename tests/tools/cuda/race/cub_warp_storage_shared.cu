// Each warp needs temporary storage of its own.
//
// RUN: --block 64 --arg u32[64]=3 --arg u32[64]
// FIND: race-write-read race-write-write | race-write-read race-write-write race-same-value
#include <cub/warp/warp_exchange.cuh>

extern "C" __global__ void kernel(const unsigned* in, unsigned* out) {
    using Exchange = cub::WarpExchange<unsigned, 2, 32>;
    __shared__ Exchange::TempStorage storage[2];
    unsigned t = threadIdx.x, items[2] = {in[t] + t, t * 2};
    Exchange(storage[0]).BlockedToStriped(items, items); // BUG SITE
    Exchange(storage[t / 32]).BlockedToStriped(items, items); // FIX
    out[t] = items[0] + items[1];
}
