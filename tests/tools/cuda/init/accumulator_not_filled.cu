// A product of matrices is added to a fragment from shared memory that nobody has cleared.
//
// RUN: --block 32 --arg f16[256]=1 --arg f32[256]
// FIND: uninitialized-output
#include <mma.h>
using namespace nvcuda;

extern "C" __global__ void kernel(const half* in, float* out) {
    __shared__ float sums[256];
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
    for (unsigned i = threadIdx.x; i < 256; i += 32) sums[i] = 0; // FIX
    __syncwarp();
    wmma::load_matrix_sync(a, in, 16);
    wmma::load_matrix_sync(b, in, 16);
    wmma::load_matrix_sync(c, sums, 16, wmma::mem_row_major); // SITE
    wmma::mma_sync(c, a, b, c);
    wmma::store_matrix_sync(out, c, 16, wmma::mem_row_major); // SITE
}
