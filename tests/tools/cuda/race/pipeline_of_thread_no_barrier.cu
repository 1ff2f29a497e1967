// A pipeline of each thread orders the copies of that thread only.
//
// RUN: --block 64 --arg u32[64]=5 --arg u32[64]
// FIND: race-write-read
#include <cuda/pipeline>

extern "C" __global__ void kernel(const unsigned* in, unsigned* out) {
    __shared__ unsigned tile[64];
    auto pipe = cuda::make_pipeline();
    unsigned t = threadIdx.x;
    pipe.producer_acquire();
    cuda::memcpy_async(&tile[t], &in[t], sizeof(unsigned), pipe); // SITE
    pipe.producer_commit();
    pipe.consumer_wait();
    __syncthreads(); // FIX
    out[t] = tile[63 - t]; // SITE
    pipe.consumer_release();
}
