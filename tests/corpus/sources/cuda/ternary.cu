// nvcc: sm_75 sm_80 sm_100
// nvrtc: sm_53

// Choices of all kinds.
extern "C" __global__ void ternary(const float *x, const int *y, float *floats, int *ints, long long *longs, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float f = x[i];
    int k = y[i];
    floats[i] = f > 0 ? f : 0;
    floats[n + i] = k > -1 ? f : -f;
    floats[2 * n + i] = fminf(fmaxf(f, -1), 1);
    floats[3 * n + i] = __saturatef(f);
    ints[i] = abs(k);
    ints[n + i] = f < 1 && k > 3 ? 7 : f >= 2 || k < -3 ? 9 : 11;
    ints[2 * n + i] = min(max(k, -5), 5);
    longs[i] = isnan(f) ? -1 : (long long)k;
}
