// nvcc: sm_75 sm_100
// nvrtc: sm_53

// Bytes and halfwords of a word side by side.
extern "C" __global__ void simd(const unsigned *a, const unsigned *b, unsigned *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned x = a[i], y = b[i], sum = __vadd2(x, y) ^ __vsub4(x, y) ^ __vaddss2(x, y) ^ __vaddus4(x, y) ^ __vsubus2(x, y);
    sum ^= __vavgs2(x, y) ^ __vavgu4(x, y) ^ __vabsdiffu4(x, y) ^ __vabsdiffs2(x, y) ^ __vmaxs4(x, y) ^ __vminu2(x, y);
    sum ^= __vcmpeq4(x, y) ^ __vcmpgts2(x, y) ^ __vsetltu4(x, y) ^ __vsads4(x, y) ^ __vneg2(x) ^ __vabs4(y);
    out[i] = sum;
}

// Products of 128 bits, by carries.
extern "C" __global__ void wide_product(const unsigned long long *a, const unsigned long long *b, unsigned long long *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned long long x = a[2 * i], y = a[2 * i + 1], u = b[2 * i], v = b[2 * i + 1], low, high;
    asm("add.cc.u64 %0, %2, %4; addc.u64 %1, %3, %5;" : "=&l"(low), "=l"(high) : "l"(x), "l"(y), "l"(u), "l"(v));
    out[2 * i] = low * 3;
    out[2 * i + 1] = high * 3 + __umul64hi(low, 3);
}
