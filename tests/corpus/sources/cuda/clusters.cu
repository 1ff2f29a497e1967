// nvcc: sm_90 sm_100
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

// A cluster of four blocks, each of which adds up the shared memory of all.
extern "C" __global__ void __cluster_dims__(4, 1, 1) clusters(const int *in, int *out)
{
    __shared__ int own[128];
    cg::cluster_group cluster = cg::this_cluster();
    own[threadIdx.x] = in[blockIdx.x * 128 + threadIdx.x];
    cluster.sync();
    int sum = 0;
    for (int rank = 0; rank < cluster.num_blocks(); rank++) sum += cluster.map_shared_rank(own, rank)[threadIdx.x];
    cluster.sync();
    out[blockIdx.x * 128 + threadIdx.x] = sum + cluster.block_rank();
}

// A copy in bulk that an mbarrier counts the bytes of.
extern "C" __global__ void bulk(const float *in, float *out)
{
    __shared__ alignas(16) float tile[256];
    __shared__ alignas(8) unsigned long long barrier;
    unsigned at = __cvta_generic_to_shared(&barrier), to = __cvta_generic_to_shared(tile);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at));
        asm volatile("fence.mbarrier_init.release.cluster;");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;" ::"r"(at) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 1024, [%2];"
                     ::"r"(to), "l"(in + 256 * blockIdx.x), "r"(at) : "memory");
    }
    __syncthreads();
    unsigned done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.b32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(at) : "memory");
    tile[threadIdx.x] = 2 * tile[threadIdx.x];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 1024;" ::"l"(out + 256 * blockIdx.x), "r"(to) : "memory");
        asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
    }
}
