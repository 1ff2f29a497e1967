// nvcc: sm_75 sm_80 sm_100
// nvrtc: sm_53

// Votes of a warp and of a block, added up.
extern "C" __global__ void votes(const int *x, unsigned *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool positive = x[i] > 0;
    unsigned ballot = __ballot_sync(~0u, positive), below, lane;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(below));
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    unsigned sum = __popc(ballot) + ballot + (__any_sync(~0u, positive) != 0) + 2 * (__all_sync(~0u, positive) != 0);
    sum += __activemask() + below + lane;
    sum += __syncthreads_count(positive);
    sum += __syncthreads_or(positive) != 0;
    sum += __syncthreads_and(positive) != 0;
    out[i] = sum;
}
