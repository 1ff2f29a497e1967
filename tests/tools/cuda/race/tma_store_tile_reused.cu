// The tile of a bulk store is filled again before the copy has read it.
//
// RUN: --block 64 --arg u32[128]
// FIND: race-write-read
// ARCH: compute_90
#include <cuda/ptx>
namespace ptx = cuda::ptx;

extern "C" __global__ void kernel(unsigned* out) {
    __shared__ alignas(16) unsigned tile[64];
    unsigned t = threadIdx.x;
#pragma unroll 1
    for (unsigned i = 0; i < 2; i++) {
        if (t >= 32) tile[t] = t + i; // SITE
        if (t >= 32) tile[t - 32] = t * i; // SITE
        ptx::fence_proxy_async(ptx::space_shared);
        __syncthreads();
        if (t == 0) {
            ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out + i * 64, tile, sizeof tile); // SITE
            ptx::cp_async_bulk_commit_group();
            ptx::cp_async_bulk_wait_group_read(ptx::n32_t<1>()); // BUG
            ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>()); // FIX
        }
        __syncthreads();
    }
    if (t == 0) ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
}
