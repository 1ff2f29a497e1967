// A block writes into the shared memory of its neighbour, which reads it.
//
// RUN: --grid 2 --cluster 2 --block 32 --arg u32[64]
// FIND: race-write-read
// ARCH: compute_90
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void kernel(unsigned* out) {
    __shared__ unsigned tile[32];
    auto cluster = cg::this_cluster();
    unsigned t = threadIdx.x, rank = cluster.block_rank();
    cluster.sync();
    cluster.map_shared_rank(tile, rank ^ 1)[t] = t + 100 * rank; // SITE
    __syncthreads(); // BUG
    cluster.sync(); // FIX
    out[cluster.thread_rank()] = tile[31 - t]; // SITE
    cluster.sync();
}
