// nvcc: sm_75 sm_100
// nvrtc: sm_53

// An array of each thread's own, with indices that only the launch knows: counts, then a sort by insertion.
extern "C" __global__ void local_arrays(const unsigned char *x, int *out, int per)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, counts[16] = {};
    short sorted[64];
    for (int k = 0; k < per && k < 64; k++) {
        unsigned char v = x[i * per + k];
        counts[v % 16]++;
        int at = k;
        for (; at > 0 && sorted[at - 1] > v; at--) sorted[at] = sorted[at - 1];
        sorted[at] = v;
    }
    int sum = 0;
    for (int k = 0; k < 16; k++) sum = sum * 3 + counts[(k * 5 + i) % 16];
    out[2 * i] = sum;
    out[2 * i + 1] = sorted[per / 2 % 64];
}
