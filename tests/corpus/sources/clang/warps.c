// clang -O0: sm_75
// clang -O1: sm_100
// clang -O3: sm_75
#include "special.h"

// A sum over each warp by a butterfly, and a ballot, which is 0 or -1.
KERNEL void shfl(int *x)
{
    int i = INDEX, sum = x[i];
#pragma clang loop unroll(disable)
    for (int mask = 16; mask > 0; mask /= 2) sum += __nvvm_shfl_sync_bfly_i32(~0u, sum, mask, 31);
    x[i] = sum + (int)__nvvm_vote_ballot_sync(~0u, sum > 3);
}

// From floats to integers of several sizes, to double, and back.
KERNEL void conv(float *x, signed char *narrow, unsigned long *wide, double *twice)
{
    int i = INDEX;
    float v = x[i];
    signed char part = (short)__builtin_fminf(__builtin_fmaxf(v, -32768), 32767);
    unsigned long whole = v < 0 ? 0 : (unsigned long)v;
    narrow[i] = part;
    wide[i] = whole;
    twice[i] = v;
    x[i] = (double)v + (double)whole + part;
}

KERNEL void votes(const int *x, unsigned *out)
{
    int i = INDEX, positive = x[i] > 0;
    unsigned sum = __nvvm_vote_ballot_sync(~0u, positive) + __nvvm_vote_any_sync(~0u, positive) + 2 * __nvvm_vote_all_sync(~0u, positive);
    sum += __nvvm_match_any_sync_i32(~0u, x[i]) + __nvvm_read_ptx_sreg_lanemask_lt() + __nvvm_read_ptx_sreg_laneid();
    __nvvm_bar_warp_sync(~0u);
    out[i] = sum + __nvvm_bar0_popc(positive) + (__nvvm_bar0_or(positive) != 0);
}
