// Escape times of the Mandelbrot set, one thread a pixel.
//
// counts[row][column] is the number of iterations of z = z^2 + c, at most `limit`, for which |z| <= 2 held.
// The pixel in row r and column k stands for c = (left + k * step) + (top - r * step) i.
extern "C" __global__ void mandelbrot(unsigned* counts, unsigned width, unsigned height, unsigned limit, float left,
                                      float top, float step)
{
    unsigned column = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned row = blockIdx.y * blockDim.y + threadIdx.y;
    if (column >= width || row >= height)
        return;
    float re = left + (float)column * step;
    float im = top - (float)row * step;
    float x = 0.0f, y = 0.0f;
    unsigned count = 0;
    while (count < limit) {
        float xx = x * x;
        float yy = y * y;
        if (xx + yy > 4.0f)
            break;
        y = 2.0f * x * y + im;
        x = xx - yy + re;
        count++;
    }
    counts[row * width + column] = count;
}
