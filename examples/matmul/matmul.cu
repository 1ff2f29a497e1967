// C = A * B for row-major matrices of any size: A is m x k, B is k x n. One block of 16 x 16 threads a tile of C.
extern "C" __global__ void matmul(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c,
                                  unsigned m, unsigned n, unsigned k)
{
    __shared__ float tile_a[16][16];
    __shared__ float tile_b[16][16];
    unsigned tx = threadIdx.x, ty = threadIdx.y;
    unsigned row = blockIdx.y * 16 + ty;
    unsigned column = blockIdx.x * 16 + tx;
    float sum = 0.0f;
    for (unsigned base = 0; base < k; base += 16) {
        tile_a[ty][tx] = row < m && base + tx < k ? a[row * k + base + tx] : 0.0f;
        tile_b[ty][tx] = base + ty < k && column < n ? b[(base + ty) * n + column] : 0.0f;
        __syncthreads();
        for (unsigned i = 0; i < 16; i++)
            sum += tile_a[ty][i] * tile_b[i][tx];
        __syncthreads();
    }
    if (row < m && column < n)
        c[row * n + column] = sum;
}
