// A sort and a scan share their temporary storage in a union.
//
// RUN: --block 64 --arg u32[128]=3 --arg u32[128]
// FIND: race-write-read
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_scan.cuh>

extern "C" __global__ void kernel(const unsigned* in, unsigned* out) {
    using Sort = cub::BlockRadixSort<unsigned, 64, 2>;
    using Scan = cub::BlockScan<unsigned, 64>;
    __shared__ union {
        Sort::TempStorage sort;
        Scan::TempStorage scan;
    } storage;
    unsigned t = threadIdx.x, keys[2];
    for (int i = 0; i < 2; i++) keys[i] = (in[t * 2 + i] + t * 37) % 64;
    Sort(storage.sort).Sort(keys, 0, 6); // SITE
    __syncthreads(); // FIX
    Scan(storage.scan).InclusiveSum(keys, keys); // SITE
    for (int i = 0; i < 2; i++) out[t * 2 + i] = keys[i];
}
