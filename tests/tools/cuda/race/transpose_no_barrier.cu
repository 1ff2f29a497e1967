// A tile is transposed over shared memory without a barrier between rows and columns.
//
// RUN: --block 8,8 --arg u32[64]=4 --arg u32[64]
// FIND: race-write-read
extern "C" __global__ void kernel(const unsigned* in, unsigned* out) {
    __shared__ unsigned tile[8][9];
    unsigned x = threadIdx.x, y = threadIdx.y;
    tile[y][x] = in[y * 8 + x]; // SITE
    __syncthreads(); // FIX
    out[y * 8 + x] = tile[x][y]; // SITE
}
