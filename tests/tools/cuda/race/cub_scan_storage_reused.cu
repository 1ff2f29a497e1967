// Two scans by warps use the same temporary storage: the second writes sums of warps that slow warps still read.
//
// RUN: --block 128 --arg u32[128]=3 --arg u32[128]
// FIND: race-write-read
#include <cub/block/block_scan.cuh>

extern "C" __global__ void kernel(const unsigned* in, unsigned* out) {
    using Scan = cub::BlockScan<unsigned, 128, cub::BLOCK_SCAN_WARP_SCANS>;
    __shared__ Scan::TempStorage storage;
    unsigned x = in[threadIdx.x], y;
    Scan(storage).ExclusiveSum(x, y); // SITE
    __syncthreads(); // FIX
    Scan(storage).InclusiveSum(y, y); // SITE
    out[threadIdx.x] = y;
}
