// A histogram over the shared memory of a cluster: its parts are cleared, and others count there.
//
// RUN: --grid 2 --cluster 2 --block 32 --arg u32[64] --arg u32[16]
// FIND: race-atomic
// ARCH: compute_90
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void kernel(const unsigned* in, unsigned* out) {
    __shared__ unsigned bins[8];
    auto cluster = cg::this_cluster();
    unsigned t = threadIdx.x, rank = cluster.block_rank();
    cluster.sync(); // BUG
    if (t < 8) bins[t] = 0; // SITE
    __syncthreads(); // BUG
    cluster.sync(); // FIX
    unsigned bin = (in[cluster.thread_rank()] + t) % 16;
    atomicAdd(cluster.map_shared_rank(&bins[bin % 8], bin / 8), 1u); // SITE
    cluster.sync();
    if (t < 8) out[rank * 8 + t] = bins[t];
}
