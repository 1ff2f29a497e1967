// The odd lanes gather their numbers in shared memory, where the first of them adds them up.
//
// RUN: --block 32 --arg u32[1]
// FIND: race-write-read
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void kernel(unsigned* out) {
    __shared__ unsigned values[32];
    unsigned t = threadIdx.x;
    if (t & 1) {
        auto odd = cg::coalesced_threads();
        values[odd.thread_rank()] = t; // SITE
        odd.sync(); // FIX
        if (odd.thread_rank() == 0) {
            unsigned sum = 0;
            for (unsigned i = 0; i < odd.size(); i++) sum += values[i]; // SITE
            *out = sum;
        }
    }
}
