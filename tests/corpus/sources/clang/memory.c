// clang -O0: sm_75
// clang -O1: sm_80
// clang -O3: sm_75 sm_100
#include "special.h"

static SHARED float tile[256];
static CONSTANT const float weights[4] = {0.5f, 1.0f, -2.0f, 4.0f};
int GLOBAL counter = 3;

// Shared memory behind barriers, constant memory and a variable of the module.
KERNEL void block_sums(const float *in, float *out)
{
    unsigned i = THREAD;
    tile[i] = in[INDEX] * weights[i % 4];
    __nvvm_bar_sync(0);
    for (unsigned half = THREADS / 2; half > 0; half /= 2) {
        if (i < half) tile[i] += tile[i + half];
        __nvvm_bar_sync(0);
    }
    if (i == 0) {
        out[BLOCK] = tile[0];
        __atomic_fetch_add((int *)&counter, 1, __ATOMIC_RELAXED);
    }
}

// Atomic operations in several orders, and a loop of compare-and-swap.
KERNEL void atomics(int *narrow, unsigned long *wide, float *single)
{
    int i = INDEX;
    __atomic_fetch_add(narrow, i, __ATOMIC_RELAXED);
    __atomic_fetch_xor(narrow + 1, i, __ATOMIC_ACQ_REL);
    __atomic_fetch_max(narrow + 2, i, __ATOMIC_SEQ_CST);
    __atomic_exchange_n(narrow + 3, i, __ATOMIC_RELEASE);
    unsigned long seen = __atomic_load_n(wide, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(wide, &seen, seen * 3 + 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {}
    __nvvm_atom_add_gen_f(single, 1.0f);
    __nvvm_membar_gl();
}

// Vectors of 2 and 4.
typedef float float4 __attribute__((ext_vector_type(4)));
typedef double double2 __attribute__((ext_vector_type(2)));
typedef unsigned char uchar4 __attribute__((ext_vector_type(4)));

KERNEL void vectors(const float4 *a, const double2 *b, uchar4 *c)
{
    int i = INDEX;
    float4 x = a[i] * a[i + 1] + 0.5f;
    double2 y = b[i] - b[i].yx;
    c[i] = __builtin_convertvector(x + (float)y.x, uchar4) ^ c[i].wzyx;
}
