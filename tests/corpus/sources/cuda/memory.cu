// nvcc: sm_75 sm_80 sm_100

// State spaces, hints and widths of accesses.
__constant__ float WEIGHTS[8] = {0.5f, -1, 2, 0.25f, 8, -3, 1, 0};
__device__ int counter = 7;
__device__ __managed__ unsigned long long total;

extern "C" __global__ void memory(const float4 *in, const double2 *pairs, float *out, const char *bytes)
{
    extern __shared__ float dynamic[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 v = __ldg(&in[i]);
    double2 w = __ldcs(&pairs[i]);
    dynamic[threadIdx.x] = v.x * WEIGHTS[i % 8] + v.y;
    __syncthreads();
    float sum = dynamic[(threadIdx.x + 1) % blockDim.x] + v.z * v.w + (float)(w.x - w.y);
    sum += __ldca(bytes + i) + __ldcg(bytes + i + 1) + __ldlu(bytes + i + 2);
    __stcs(out + i, sum);
    __threadfence_system();
    atomicAdd(&counter, 1);
    atomicAdd(&total, (unsigned long long)i);
    *(volatile float *)(out + i) = sum + 1;
}

// Memory that the kernel allocates itself.
extern "C" __global__ void heap(int *out, int length)
{
    int *own = (int *)malloc(length * sizeof(int)), sum = 0;
    if (!own) __trap();
    memset(own, 0, length * sizeof(int));
    for (int k = 0; k < length; k++) own[k * 7 % length] += k;
    for (int k = 0; k < length; k++) sum = sum * 5 + own[k];
    free(own);
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
