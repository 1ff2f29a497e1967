// nvcc: sm_75 sm_80 sm_90 sm_100

// A scalar product, by one block.
extern "C" __global__ void fp64_dot(const double *a, const double *b, double *out, int n)
{
    __shared__ double partial[1024];
    double sum = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += a[i] * b[i];
    partial[threadIdx.x] = sum;
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    }
    if (threadIdx.x == 0) *out = partial[0];
}

// Arithmetic, comparisons and conversions of doubles.
extern "C" __global__ void fp64_ops(const double *a, const double *b, double *out, int *flags, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double x = a[i], y = b[i];
    flags[i] = (x < y) | (x <= y) << 1 | (x == y) << 2 | (x != y) << 3 | !(x < y) << 4 | (isnan(x) || isinf(y)) << 5;
    double sum = x / y + sqrt(fabs(x)) + __dadd_ru(x, y) + __dmul_rd(x, y) + __fma_rz(x, y, x);
    sum += fmin(x, y) + fmax(x, y) + floor(x) + ceil(y) + trunc(x) + rint(y) + copysign(x, y);
    sum += (float)x + (int)y + (long long)x + (unsigned)fabs(y) + __double2hiint(x) + __hiloint2double(i, i);
    out[i] = sum;
}
