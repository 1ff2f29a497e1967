// nvcc: sm_75 sm_80 sm_100
// nvrtc: sm_53

// From floats to integers of several sizes, to double, and back.
extern "C" __global__ void conv(float *x, signed char *narrow, unsigned long long *wide, double *twice)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = x[i];
    short part = (short)fminf(fmaxf(v, -32768), 32767);
    unsigned long long whole = __float2ull_rz(v);
    narrow[i] = (signed char)part;
    wide[i] = whole;
    twice[i] = v;
    x[i] = (float)((double)v + (double)whole + (double)(signed char)part);
}

// From integers of each type to each other, and to floats in every rounding.
extern "C" __global__ void widen(const short *x, long long *out, float *floats, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    short v = x[i];
    out[i] = (signed char)v + (unsigned char)v * 3ll + (unsigned short)v * 5ll + (unsigned)v * 7ll + (long long)v * 11;
    int big = v * 65537;
    floats[i] = __int2float_rn(big) + __int2float_rz(big) + __int2float_ru(big) + __int2float_rd(big);
    floats[i] += __uint2float_rn(big) + __ll2float_rz((long long)big << 20) + __ull2float_ru(big) + (float)v;
}
