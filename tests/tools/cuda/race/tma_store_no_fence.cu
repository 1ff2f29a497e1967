// A tile is stored by a bulk copy without a fence between the proxies.
//
// RUN: --block 64 --arg u32[64]
// FIND: race-proxy
// ARCH: compute_90
#include <cuda/ptx>
namespace ptx = cuda::ptx;

extern "C" __global__ void kernel(unsigned* out) {
    __shared__ alignas(16) unsigned tile[64];
    unsigned t = threadIdx.x;
    tile[t] = t; // SITE
    ptx::fence_proxy_async(ptx::space_shared); // FIX
    __syncthreads();
    if (t == 0) {
        ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out, tile, sizeof tile); // SITE
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
    }
}
