// nvcc: sm_75 sm_90
// nvrtc: sm_80

// Calls that are not inlined: with structures, by pointers to functions, recursive, virtual.
struct Pair { float first; double second; short third; };

__device__ __noinline__ Pair swapped(Pair pair, int by) { return {(float)pair.second + by, pair.first - by, (short)(pair.third ^ by)}; }
__device__ __noinline__ int ackermann(int m, int n)
{
    if (m == 0) return n + 1;
    return ackermann(m - 1, n == 0 ? 1 : ackermann(m, n - 1));
}

__device__ __noinline__ int twice(int x) { return 2 * x; }
__device__ __noinline__ int square(int x) { return x * x; }
__device__ __noinline__ int negated(int x) { return -x; }
typedef int (*Function)(int);
__device__ Function const TABLE[] = {twice, square, negated};

struct Shape { __device__ virtual float area() const = 0; };
struct Square : Shape { float side; __device__ float area() const override { return side * side; } };
struct Circle : Shape { float radius; __device__ float area() const override { return 3.0f * radius * radius; } };

extern "C" __global__ void calls(const int *x, int *integers, float *floats)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, v = x[i];
    Pair pair = swapped({(float)v, v * 0.5, (short)i}, i % 7);
    integers[i] = TABLE[(unsigned)v % 3](v) + ackermann(2, i % 4) + pair.third;
    Square square_of_side;
    Circle circle_of_radius;
    square_of_side.side = v;
    circle_of_radius.radius = v;
    const Shape *shape = i % 2 ? (const Shape *)&square_of_side : &circle_of_radius;
    floats[i] = pair.first + (float)pair.second + shape->area();
}
