// A block writes to its neighbour's shared memory; the neighbour must have started.
//
// RUN: --grid 2 --cluster 2 --block 32 --arg u32[64]
// FIND: cluster-start
// ARCH: compute_90
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void kernel(unsigned* out) {
    __shared__ unsigned tile[32];
    auto cluster = cg::this_cluster();
    unsigned t = threadIdx.x, rank = cluster.block_rank();
    cluster.sync(); // FIX
    cluster.map_shared_rank(tile, rank ^ 1)[t] = t; // SITE
    cluster.sync();
    out[cluster.thread_rank()] = tile[31 - t];
}
