// nvcc: sm_75 sm_80 sm_100
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;

// Cooperative groups: tiles of warps, threads that agree, the whole grid.
extern "C" __global__ void groups(const int *in, int *out)
{
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
    int i = cg::this_grid().thread_rank(), v = in[i];
    int sum = cg::reduce(tile, v, cg::plus<int>()) + cg::inclusive_scan(tile, v, cg::greater<int>());
    if (v % 3 == 0) {
        cg::coalesced_group those = cg::coalesced_threads();
        sum += those.size() * 100 + those.thread_rank() + those.shfl(v, 0);
    }
    auto same = cg::labeled_partition(tile, v % 4);
    out[i] = sum + same.num_threads() + tile.shfl_xor(v, 3) + (int)tile.ballot(v > 0);
    cg::sync(block);
}

extern "C" __global__ void grid(int *data, int rounds)
{
    cg::grid_group all = cg::this_grid();
    for (int round = 0; round < rounds; round++) {
        int next = data[(all.thread_rank() + 1) % all.size()];
        all.sync();
        data[all.thread_rank()] = next + round;
        all.sync();
    }
}
