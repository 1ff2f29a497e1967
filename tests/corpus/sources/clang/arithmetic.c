// clang -O0: sm_75
// clang -O1: sm_90
// clang -O3: sm_75 sm_100
#include "special.h"

// Integers of every width, added up.
KERNEL void ints(const int *a, const int *b, long *out)
{
    int i = INDEX, x = a[i], y = b[i];
    unsigned u = x, v = y;
    long sum = (long)x * y + (x >> 3) + (u >> 5) + (u << 7) + (x & y) + (x | y) - (x ^ y);
    if (y != 0 && y != -1) sum += x / y + x % y + u / v + u % v;
    sum += __builtin_clz(u | 1) + __builtin_popcount(u) + __builtin_ctz(v | 8) + __builtin_bitreverse32(u) + __builtin_bswap32(v);
    sum += (short)x * (short)y + (signed char)x - (unsigned char)y + __builtin_rotateleft32(u, 3);
    sum += __builtin_elementwise_add_sat(x, y) + __builtin_elementwise_max(x, y) + __builtin_elementwise_abs(x);
    out[i] = sum;
}

// Rounded once or twice: what is not contracted.
KERNEL void saxpy(float factor, const float *x, float *y, long n)
{
#pragma clang fp contract(off)
    long i = INDEX;
    if (i < n) y[i] = factor * x[i] + y[i];
}

// Doubles: every comparison, and functions that are instructions.
KERNEL void cmp_f64(const double *x, const double *y, unsigned *out)
{
    int i = INDEX;
    double a = x[i], b = y[i];
    unsigned order = a < b ? 0 : a == b ? 16 : a > b ? 32 : 64;
    out[i] = order + (a < b) + (a == b) * 2 + (a != b) * 4 + __builtin_isnan(a) * 8;
}

KERNEL void functions(const float *x, float *out)
{
    int i = INDEX;
    float a = x[i];
    out[i] = __builtin_sqrtf(__builtin_fabsf(a)) + __builtin_floorf(a) + __builtin_ceilf(a) + __builtin_truncf(a) + __builtin_rintf(a)
           + __builtin_copysignf(a, -1) + __builtin_fminf(a, 2) + __builtin_fmaxf(a, 3) + __builtin_fmaf(a, a, 1) + a / 3;
}

// The product of two 128-bit integers, shifted.
KERNEL void u128mul(unsigned long *words)
{
    unsigned __int128 x = words[0] | (unsigned __int128)words[1] << 64, y = words[2] | (unsigned __int128)words[3] << 64;
    x = x * y >> 3;
    words[0] = x;
    words[1] = x >> 64;
}
