// nvcc: sm_80 sm_100

// What threads of a warp do together: shuffles of 64 bits, matches, reductions, barriers that some arrive at.
extern "C" __global__ void warps(const long long *in, unsigned *out)
{
    __shared__ long long hand[256];
    int i = threadIdx.x, all;
    long long v = in[i], other = __shfl_xor_sync(~0u, v, 5);
    unsigned sum = __match_any_sync(~0u, (int)v % 4) + __match_all_sync(~0u, v, &all) + all;
    sum += __reduce_add_sync(~0u, (unsigned)v) + __reduce_min_sync(~0u, (int)v) + __reduce_xor_sync(~0u, (unsigned)v);
    if (i % 32 < 16) sum += __reduce_max_sync(0xffff, (int)other) + __ballot_sync(0xffff, other > v);
    __syncwarp();
    hand[i] = other;
    if (i < 128) {
        asm volatile("bar.arrive 1, 256;" ::: "memory");
    } else {
        asm volatile("bar.sync 1, 256;" ::: "memory");
        sum += hand[i - 128];
    }
    out[i] = sum;
}
