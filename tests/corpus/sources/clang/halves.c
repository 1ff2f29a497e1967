// clang -O0: sm_53 sm_90
// clang -O1: sm_75 sm_100
// clang -O3: sm_53 sm_90 sm_100
#include "special.h"

typedef _Float16 half2 __attribute__((ext_vector_type(2)));

// Halves: each operation rounded.
KERNEL void half(const _Float16 *x, const _Float16 *y, _Float16 *out)
{
#pragma clang fp contract(off)
    int i = INDEX;
    _Float16 a = x[i], b = y[i];
    out[i] = a > b ? a + a * b : b - a;
}

// Halves added to floats: sm_100 has instructions for it.
KERNEL void mixed(const _Float16 *a, const _Float16 *b, float *c)
{
    int i = THREAD;
    float sum = c[i] + (float)a[i];
    c[i] = sum;
    c[32 + i] = __builtin_fmaf((float)a[i], (float)b[i], sum);
    c[64 + i] = sum - (float)b[i];
}

// Pairs of halves, compared and chosen.
KERNEL void pairs(const half2 *x, const half2 *y, half2 *out)
{
    int i = INDEX;
    half2 a = x[i], b = y[i];
    out[i] = (a < b ? a * b : a - b) + __builtin_elementwise_max(a, b);
}

KERNEL void conversions(const _Float16 *x, const __bf16 *y, short *ints, double *doubles, __bf16 *brain)
{
    int i = INDEX;
    ints[i] = (short)x[i];
    doubles[i] = (double)x[i] + (float)y[i];
    brain[i] = (__bf16)((float)y[i] + 1.0f);
}
