// The newest batch of a thread's pipeline is needed, and only the older ones are awaited.
//
// RUN: --block 32 --arg u32[64]=5 --arg u32[32]
// FIND: race-write-read copy-not-awaited
#include <cuda/pipeline>

extern "C" __global__ void kernel(const unsigned* in, unsigned* out) {
    __shared__ unsigned left[32], right[32];
    auto pipe = cuda::make_pipeline();
    unsigned t = threadIdx.x;
    pipe.producer_acquire();
    cuda::memcpy_async(&left[t], &in[t], sizeof(unsigned), pipe);
    pipe.producer_commit();
    pipe.producer_acquire();
    cuda::memcpy_async(&right[t], &in[32 + t], sizeof(unsigned), pipe); // SITE
    pipe.producer_commit();
    cuda::pipeline_consumer_wait_prior<1>(pipe); // BUG
    cuda::pipeline_consumer_wait_prior<0>(pipe); // FIX
    __syncthreads();
    out[t] = left[31 - t] + right[31 - t] + right[t]; // SITE
    pipe.consumer_release();
    pipe.consumer_release();
}
