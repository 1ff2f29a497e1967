// What a bulk store wrote is read again when only its source has been read.
//
// RUN: --block 32 --arg u32[32] --arg u32[32]
// FIND: copy-not-awaited
// ARCH: compute_90
#include <cuda/ptx>
namespace ptx = cuda::ptx;

extern "C" __global__ void kernel(unsigned* stored, unsigned* out) {
    __shared__ alignas(16) unsigned tile[32];
    unsigned t = threadIdx.x;
    tile[t] = t;
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (t == 0) {
        ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, stored, tile, sizeof tile); // SITE
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>()); // BUG
        ptx::cp_async_bulk_wait_group(ptx::n32_t<0>()); // FIX
        out[0] = stored[5]; // SITE
    }
}
