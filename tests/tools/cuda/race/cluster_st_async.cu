// Numbers arrive asynchronously in another block's shared memory; they are read without waiting for their bytes.
//
// RUN: --grid 2 --cluster 2 --block 32 --arg u32[64]
// FIND: race-write-read
// ARCH: compute_90
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/ptx>
#pragma nv_diag_suppress static_var_with_dynamic_init
namespace ptx = cuda::ptx;

extern "C" __global__ void kernel(unsigned* out) {
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    __shared__ alignas(16) unsigned tile[32];
    auto cluster = cooperative_groups::this_cluster();
    unsigned t = threadIdx.x, rank = cluster.block_rank();
    auto* handle = cuda::device::barrier_native_handle(bar);
    if (t == 0) {
        init(&bar, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, handle, sizeof tile);
    }
    cluster.sync();
    ptx::st_async(cluster.map_shared_rank(&tile[t], rank ^ 1), t + 100 * rank, cluster.map_shared_rank(handle, rank ^ 1)); // SITE
    __syncthreads(); // BUG
    bar.wait_parity(0); // FIX
    out[cluster.thread_rank()] = tile[31 - t]; // SITE
    cluster.sync();
}
