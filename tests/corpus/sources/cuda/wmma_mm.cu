// nvcc: sm_75 sm_80 sm_100
// nvrtc: sm_70
#include <mma.h>
using namespace nvcuda::wmma;

// C = A B by one warp: A is 16 x k by rows, B is k x 16 by columns.
extern "C" __global__ void wmma_mm(const __half *a, const __half *b, float *c, int k)
{
    fragment<accumulator, 16, 16, 16, float> sum;
    fill_fragment(sum, 0);
    for (int at = 0; at < k; at += 16) {
        fragment<matrix_a, 16, 16, 16, __half, row_major> left;
        fragment<matrix_b, 16, 16, 16, __half, col_major> right;
        load_matrix_sync(left, a + at, k);
        load_matrix_sync(right, b + at, k);
        mma_sync(sum, left, right, sum);
    }
    store_matrix_sync(c, sum, 16, mem_row_major);
}
