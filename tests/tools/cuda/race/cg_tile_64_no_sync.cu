// A tile of two warps exchanges through shared memory; only one side waits for the tile.
//
// RUN: --block 128 --arg u32[128]
// FIND: race-write-read
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void kernel(unsigned* out) {
    __shared__ cg::block_tile_memory<128> memory;
    __shared__ unsigned tile[128];
    auto block = cg::this_thread_block(memory);
    auto pair = cg::tiled_partition<64>(block);
    unsigned t = threadIdx.x;
    tile[t] = t; // SITE
    pair.sync(); // FIX
    out[t] = tile[t ^ 32]; // SITE
}
