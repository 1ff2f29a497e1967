// nvcc: sm_75 sm_90 sm_100
#include <cuda/atomic>
#include <cuda/std/complex>

// Orders and scopes of the memory model: a message behind a flag, a counter with each order, a lock.
extern "C" __global__ void message(int *data, int *flag, int *out)
{
    cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);
    if (blockIdx.x == 0) {
        data[threadIdx.x] = threadIdx.x * 3;
        __syncthreads();
        if (threadIdx.x == 0) ready.store(1, cuda::memory_order_release);
    } else {
        while (ready.load(cuda::memory_order_acquire) == 0) __nanosleep(20);
        out[threadIdx.x] = data[threadIdx.x];
    }
}

extern "C" __global__ void orders(unsigned *counters, unsigned long long *wide)
{
    cuda::atomic_ref<unsigned, cuda::thread_scope_block> block(counters[0]);
    cuda::atomic_ref<unsigned, cuda::thread_scope_system> system(counters[1]);
    cuda::atomic_ref<unsigned long long, cuda::thread_scope_device> device(*wide);
    block.fetch_add(1, cuda::memory_order_relaxed);
    system.fetch_max(threadIdx.x, cuda::memory_order_seq_cst);
    unsigned long long seen = device.load(cuda::memory_order_relaxed);
    while (!device.compare_exchange_weak(seen, seen * 2 + 1, cuda::memory_order_acq_rel)) {}
    cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_device);
}

extern "C" __global__ void complex_product(const cuda::std::complex<float> *a, cuda::std::complex<float> *b)
{
    b[threadIdx.x] = a[threadIdx.x] * b[threadIdx.x] + cuda::std::conj(a[threadIdx.x]);
}
