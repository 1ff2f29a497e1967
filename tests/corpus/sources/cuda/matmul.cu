// nvcc: sm_75 sm_80 sm_90 sm_100
// nvrtc: sm_53 sm_80

// Products of square matrices in tiles of shared memory; no size needs to be a multiple of a tile.
const int TILE = 16;

template <class T> __device__ T multiply_add(T a, T b, T c) { return a * b + c; }
__device__ float multiply_add(float a, float b, float c) { return __fmaf_rn(a, b, c); }
__device__ double multiply_add(double a, double b, double c) { return __fma_rn(a, b, c); }

template <class T> __device__ void multiply(const T *a, const T *b, T *c, int n)
{
    __shared__ T left[TILE][TILE], right[TILE][TILE + 1];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
    T sum = 0;
    for (int at = 0; at < n; at += TILE) {
        left[y][x] = row < n && at + x < n ? a[row * n + at + x] : T(0);
        right[y][x] = column < n && at + y < n ? b[(at + y) * n + column] : T(0);
        __syncthreads();
        for (int k = 0; k < TILE; k++) sum = multiply_add(left[y][k], right[k][x], sum);
        __syncthreads();
    }
    if (row < n && column < n) c[row * n + column] = sum;
}

extern "C" __global__ void matmul_f(const float *a, const float *b, float *c, int n) { multiply(a, b, c, n); }
extern "C" __global__ void matmul_d(const double *a, const double *b, double *c, int n) { multiply(a, b, c, n); }
extern "C" __global__ void matmul_i(const int *a, const int *b, int *c, int n) { multiply(a, b, c, n); }
