// nvcc: sm_75 sm_80 sm_100
// nvrtc: sm_61 sm_80

// Every integer operation that CUDA C++ has, added up; `c` is read and overwritten.
extern "C" __global__ void integer(const int *a, const unsigned *b, long long *c, int *narrow)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int x = a[i];
    unsigned y = b[i];
    long long z = c[i];

    unsigned sum = x + x / 7 + x % 7 + (x << 3) + (x >> 2);
    sum += __clz(x) + __ffs(x) - 1;
    sum += y / 7 + y % 7 + (y >> 5) + __popc(y) + __brev(y);
    sum += __dp4a(x, (int)y, 5);
    sum += __byte_perm(x, y, (x & 0x7777) ^ 0x3210);
    sum += __mulhi(x, x) + __umulhi(y, y) + 1 + __mul24(x, x);
    sum += __vadd4(x, y) + __sad(x, x + 3, y);
    sum += __funnelshift_l(x, y, x & 31) + __funnelshift_r(x, y, 5);
    narrow[i] = sum;

    unsigned long long wide = (long long)x * y;
    wide += (z >> 3) + ((unsigned long long)z << 5) + z % 13 + z / 10;
    wide += __brevll(z) + __popcll(z) + __clzll(z) + __mul64hi(z, z) + z / x;
    c[i] = wide;
}

// How many steps lead to 1.
extern "C" __global__ void collatz(const long long *start, int *steps)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    long long value = start[i];
    int count = 0;
    while (value != 1 && count < 10000) {
        value = value % 2 ? 3 * value + 1 : value / 2;
        count++;
    }
    steps[i] = count;
}

// A switch; case 5 reads the next element.
extern "C" __global__ void sw(const int *choice, int *out)
{
    int i = threadIdx.x, result;
    switch (choice[i]) {
    case 0: result = 5; break;
    case 1: result = 3; break;
    case 2: result = 17; break;
    case 3: result = i; break;
    case 4: result = -5; break;
    case 5: result = choice[i + 1]; break;
    case 6: result = 77; break;
    case 7: result = -i; break;
    default: result = -1;
    }
    out[i] = result;
}
