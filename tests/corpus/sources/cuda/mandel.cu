// nvcc: sm_75 sm_80 sm_100
// nvrtc: sm_53

// The Mandelbrot set, one byte a pixel. The intrinsics say what is rounded.
extern "C" __global__ void mandel(unsigned char *out, int width, int height, float x0, float y0, float dx, float dy, int limit)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (column >= width || row >= height) return;
    float re = __fmaf_rn(column, dx, x0), im = __fmaf_rn(row, dy, y0);
    float x = 0, y = 0, xx = 0, yy = 0;
    int count = 0;
    while (count < limit && __fadd_rn(xx, yy) < 4) {
        float next = __fadd_rn(re, __fsub_rn(xx, yy));
        y = __fmaf_rn(x + x, y, im);
        x = next;
        xx = __fmul_rn(x, x);
        yy = __fmul_rn(y, y);
        count++;
    }
    out[row * width + column] = count;
}
