// nvcc: sm_75 sm_80 sm_90 sm_100
// nvrtc: sm_60

// How often each byte comes, counted in shared memory first.
extern "C" __global__ void histogram(const unsigned char *data, unsigned *bins, int n)
{
    __shared__ unsigned own[256];
    own[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&own[data[i]], 1);
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}

// Every atomic operation of integers, whose results do not depend on the order.
extern "C" __global__ void every_integer(const int *x, int *narrow, unsigned long long *wide, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int v = x[i];
    atomicAdd(narrow, v);
    atomicSub(narrow + 1, v);
    atomicMin(narrow + 2, v);
    atomicMax(narrow + 3, v);
    atomicAnd(narrow + 4, v);
    atomicOr(narrow + 5, v);
    atomicXor(narrow + 6, v);
    atomicMin((unsigned *)narrow + 7, (unsigned)v);
    atomicMax((unsigned *)narrow + 8, (unsigned)v);
    atomicInc((unsigned *)narrow + 9, 99);
    atomicDec((unsigned *)narrow + 10, 99);
    atomicAdd(wide, (unsigned long long)v);
    atomicMin((long long *)wide + 1, (long long)v);
    atomicMax((long long *)wide + 2, (long long)v);
    atomicAnd(wide + 3, (unsigned long long)v);
    atomicOr(wide + 4, (unsigned long long)v);
    atomicXor(wide + 5, (unsigned long long)v);
}

// Sums of floats, one of them by a loop of compare-and-swap.
extern "C" __global__ void sums(const float *x, float *single, double *twice, float *product, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    atomicAdd(single, x[i]);
    atomicAdd(twice, (double)x[i]);
    int seen = __float_as_int(*(volatile float *)product), old;
    do {
        old = seen;
        seen = atomicCAS((int *)product, old, __float_as_int(__int_as_float(old) + x[i]));
    } while (seen != old);
}

// Tickets: each thread gets a number of its own, and leaves it.
extern "C" __global__ void tickets(unsigned *next, unsigned *taken)
{
    unsigned mine = atomicAdd(next, 1);
    atomicExch(&taken[mine], mine + 1);
    __threadfence();
    atomicAdd_block(next + 1, 1);
    atomicAdd_system(next + 2, 1);
}
