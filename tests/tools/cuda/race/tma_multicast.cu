// One block loads a tile for both of its cluster; the other does not wait for its part.
//
// RUN: --grid 2 --cluster 2 --block 32 --arg u32[32]=3 --arg u32[64]
// FIND: race-write-read
// ARCH: compute_90
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/ptx>
#pragma nv_diag_suppress static_var_with_dynamic_init
namespace ptx = cuda::ptx;

extern "C" __global__ void kernel(const unsigned* in, unsigned* out) {
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    __shared__ alignas(16) unsigned tile[32];
    auto cluster = cooperative_groups::this_cluster();
    unsigned t = threadIdx.x, rank = cluster.block_rank();
    auto* handle = cuda::device::barrier_native_handle(bar);
    if (t == 0) {
        init(&bar, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
    cluster.sync();
    if (t == 0) ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, handle, sizeof tile);
    if (t == 0 && rank == 0)
        ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, tile, in, sizeof tile, handle, uint16_t(3)); // SITE
    if (rank == 0) bar.wait_parity(0); // BUG
    bar.wait_parity(0); // FIX
    out[cluster.thread_rank()] = tile[31 - t]; // SITE
    cluster.sync();
}
