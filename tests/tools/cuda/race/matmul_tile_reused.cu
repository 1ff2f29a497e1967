// A product of matrices by tiles: the barrier behind the product of a tile is left out.
//
// RUN: --block 8,8 --arg f32[256]=1 --arg f32[256]=2 --arg f32[64]
// FIND: race-write-read
extern "C" __global__ void kernel(const float* a, const float* b, float* c) {
    __shared__ float left[8][8], right[8][8];
    unsigned x = threadIdx.x, y = threadIdx.y;
    float sum = 0;
#pragma unroll 1
    for (unsigned k = 0; k < 4; k++) {
        left[y][x] = a[y * 32 + k * 8 + x]; // SITE
        right[y][x] = b[(k * 8 + y) * 8 + x]; // SITE
        __syncthreads();
        for (unsigned i = 0; i < 8; i++) sum += left[y][i] * right[i][x]; // SITE
        __syncthreads(); // FIX
    }
    c[y * 8 + x] = sum;
}
