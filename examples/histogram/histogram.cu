// How often each byte occurs. Each block counts its 16 * blockDim.x bytes in shared memory, then adds its counts to
// the 256 global ones. Any number of threads up to 1024 will do.
extern "C" __global__ void histogram(const unsigned char* data, unsigned n, unsigned* bins)
{
    __shared__ unsigned counts[256];
    for (unsigned i = threadIdx.x; i < 256; i += blockDim.x)
        counts[i] = 0;
    __syncthreads();
    unsigned first = blockIdx.x * blockDim.x * 16 + threadIdx.x;
    for (unsigned i = 0; i < 16; i++) {
        unsigned at = first + i * blockDim.x;
        if (at < n)
            atomicAdd(&counts[data[at]], 1u);
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < 256; i += blockDim.x)
        if (counts[i] != 0)
            atomicAdd(&bins[i], counts[i]);
}
