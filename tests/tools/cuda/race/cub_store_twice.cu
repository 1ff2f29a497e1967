// Two tiles are stored by transposing over one temporary storage.
//
// RUN: --block 64 --arg u32[512]
// FIND: race-write-read
#include <cub/block/block_store.cuh>

extern "C" __global__ void kernel(unsigned* out) {
    using Store = cub::BlockStore<unsigned, 64, 4, cub::BLOCK_STORE_TRANSPOSE>;
    __shared__ Store::TempStorage storage;
    unsigned items[4], t = threadIdx.x;
    for (unsigned i = 0; i < 4; i++) items[i] = t * 4 + i;
    Store(storage).Store(out, items); // SITE
    __syncthreads(); // FIX
    for (unsigned& item : items) item *= 3;
    Store(storage).Store(out + 256, items); // SITE
}
