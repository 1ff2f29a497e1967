// nvcc: sm_75 sm_100
// nvcc -use_fast_math: sm_75 sm_100
// nvrtc: sm_70

// Functions of floats, which the compiler's library computes.
extern "C" __global__ void single(const float *a, const float *b, float *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = a[i], y = b[i], sine, cosine;
    sincosf(x, &sine, &cosine);
    float sum = sine + cosine + tanf(x) + expf(y) + exp2f(x) + logf(fabsf(x)) + log1pf(fabsf(y)) + powf(fabsf(x), y);
    sum += sqrtf(fabsf(x)) + rsqrtf(fabsf(y)) + cbrtf(x) + hypotf(x, y) + atan2f(x, y) + asinf(x) + tanhf(y) + erff(x);
    out[i] = sum + lgammaf(x) + fmodf(x, y) + x / y + remainderf(x, y) + ldexpf(x, i % 8) + floorf(x) + roundf(y) + __fdividef(x, y);
}

extern "C" __global__ void twice(const double *a, const double *b, double *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    double x = a[i], y = b[i];
    double sum = sin(x) + exp(y) + log(fabs(x)) + pow(fabs(x), y) + cbrt(x) + atan(y) + sinh(x) + erfc(y);
    out[i] = sum + fmod(x, y) + rsqrt(fabs(x)) + logb(x) + nextafter(x, y) + j0(x);
}
