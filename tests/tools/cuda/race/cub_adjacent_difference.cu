// Differences to the right are made over storage that a sum still reads.
//
// RUN: --block 128 --arg u32[128]=3 --arg u32[128]
// FIND: race-write-read
#include <cub/block/block_adjacent_difference.cuh>
#include <cub/block/block_scan.cuh>

extern "C" __global__ void kernel(const unsigned* in, unsigned* out) {
    using Scan = cub::BlockScan<unsigned, 128, cub::BLOCK_SCAN_WARP_SCANS>;
    using Difference = cub::BlockAdjacentDifference<unsigned, 128>;
    __shared__ union {
        Scan::TempStorage scan;
        Difference::TempStorage difference;
    } storage;
    unsigned x[1] = {in[threadIdx.x]}, y[1];
    Scan(storage.scan).InclusiveSum(x[0], x[0]); // SITE
    __syncthreads(); // FIX
    Difference(storage.difference).SubtractRight(x, y, [](unsigned a, unsigned b) { return a - b; }); // SITE
    out[threadIdx.x] = y[0];
}
