// nvcc: sm_90 sm_100
#include <cuda.h>

// A tile of a matrix that a tensor map describes comes to shared memory, and its transpose goes to another matrix.
extern "C" __global__ void tensor_copies(const __grid_constant__ CUtensorMap from, const __grid_constant__ CUtensorMap to)
{
    __shared__ alignas(128) float in[32][32], out[32][32];
    __shared__ alignas(8) unsigned long long barrier;
    unsigned at = __cvta_generic_to_shared(&barrier), tile = __cvta_generic_to_shared(in), turned = __cvta_generic_to_shared(out);
    int column = blockIdx.x * 32, row = blockIdx.y * 32;
    if (threadIdx.x == 0) {
        asm volatile("prefetch.tensormap [%0];" ::"l"(&from) : "memory");
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; fence.mbarrier_init.release.cluster;" ::"r"(at));
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 4096;" ::"r"(at) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                     ::"r"(tile), "l"(&from), "r"(column), "r"(row), "r"(at) : "memory");
    }
    __syncthreads();
    unsigned done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.b32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(at) : "memory");
    for (int k = threadIdx.x; k < 1024; k += blockDim.x) out[k % 32][k / 32] = in[k / 32][k % 32];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&to), "r"(row), "r"(column), "r"(turned) : "memory");
        asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
}
