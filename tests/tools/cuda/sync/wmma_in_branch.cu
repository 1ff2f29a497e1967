// A product of matrices by a warp of which only half is there.
//
// RUN: --block 32 --arg f16[256]=1 --arg f32[256]
// FIND: divergent-aligned
#include <mma.h>
using namespace nvcuda;

extern "C" __global__ void kernel(const half* in, float* out) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
    wmma::load_matrix_sync(a, in, 16);
    wmma::load_matrix_sync(b, in, 16);
    wmma::fill_fragment(c, 0.0f);
    if (threadIdx.x < 16) { // BUG
    { // FIX
        wmma::mma_sync(c, a, b, c); // SITE
        wmma::store_matrix_sync(out, c, 16, wmma::mem_row_major); // SITE
    }
}
