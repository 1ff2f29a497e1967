// The functions of the table of benches/kernels.rs in OpenCL C (pocl.cl) on PoCL, which compiles them with LLVM.
//
//   apt-get install pocl-opencl-icd ocl-icd-opencl-dev
//   cc -O2 benches/peers/pocl.c -lOpenCL -lm -o target/pocl
//   POCL_MAX_PTHREAD_COUNT=1 taskset -c 0 target/pocl benches/peers/pocl.cl
//
// prints the median of ten times, as the other table has, and that of the first launch, which compiles the kernel. Left out are
// products of matrices on `mma`, which OpenCL C has no word for, and the look-back, whose groups wait for others.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static cl_context context;
static cl_command_queue queue;
static cl_program program;

static void check(cl_int error, const char *what) {
    if (error != CL_SUCCESS) {
        fprintf(stderr, "%s: OpenCL error %d\n", what, error);
        exit(1);
    }
}

static double milliseconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
}

static int ascending(const void *a, const void *b) {
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

static cl_mem memory(size_t bytes, const void *contents) {
    cl_int error;
    cl_mem_flags flags = CL_MEM_READ_WRITE | (contents ? CL_MEM_COPY_HOST_PTR : 0);
    cl_mem memory = clCreateBuffer(context, flags, bytes, (void *)contents, &error);
    check(error, "memory");
    return memory;
}

// Floats in [0, scale).
static cl_mem floats(size_t count, float scale) {
    float *elements = malloc(count * sizeof *elements);
    unsigned state = 1;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        elements[i] = (state >> 8) * (scale / (1 << 24));
    }
    cl_mem array = memory(count * sizeof *elements, elements);
    free(elements);
    return array;
}

// Times a kernel. `args` ends with a size of 0.
typedef struct {
    size_t size;
    const void *value;
} Arg;
#define ARG(x) {sizeof(x), &(x)}

static void run(const char *row, const char *name, const size_t threads[2], const size_t block[2], const Arg *args) {
    cl_int error;
    cl_kernel kernel = clCreateKernel(program, name, &error);
    check(error, name);
    for (cl_uint i = 0; args[i].size; i++) check(clSetKernelArg(kernel, i, args[i].size, args[i].value), name);
    // So many launches that they last a millisecond.
    double first = 0, times[10];
    int launches = 1;
    for (int i = -2; i < 10; i++) {
        double start = milliseconds();
        for (int k = 0; k < launches; k++) {
            check(clEnqueueNDRangeKernel(queue, kernel, 2, NULL, threads, block, 0, NULL, NULL), name);
            check(clFinish(queue), name);
        }
        double time = (milliseconds() - start) / launches;
        if (i == -2) first = time;
        else if (i == -1) launches = time < 1 ? (int)(1 / time) + 1 : 1;
        else times[i] = time;
    }
    qsort(times, 10, sizeof *times, ascending);
    printf("| %s | %.3f ms | first launch %.1f ms |\n", row, (times[4] + times[5]) / 2, first);
    fflush(stdout);
    clReleaseKernel(kernel);
}

static char *contents(const char *path) {
    static char text[1 << 16];
    FILE *file = path ? fopen(path, "r") : NULL;
    if (!file || !fread(text, 1, sizeof text - 1, file)) {
        fprintf(stderr, "usage: pocl benches/peers/pocl.cl\n");
        exit(2);
    }
    fclose(file);
    return text;
}

int main(int argc, char **argv) {
    const char *source = contents(argc == 2 ? argv[1] : NULL);
    cl_platform_id platform;
    cl_device_id device;
    cl_int error;
    check(clGetPlatformIDs(1, &platform, NULL), "platform");
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_CPU, 1, &device, NULL), "device");
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    check(error, "context");
    queue = clCreateCommandQueue(context, device, 0, &error);
    check(error, "queue");
    program = clCreateProgramWithSource(context, 1, &source, NULL, &error);
    check(error, "program");
    if (clBuildProgram(program, 1, &device, "", NULL, NULL) != CL_SUCCESS) {
        static char log[1 << 16];
        clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof log, log, NULL);
        fprintf(stderr, "%s\n", log);
        return 1;
    }
    const size_t line[2] = {256, 1}, million[2] = {1 << 20, 1};
    const size_t million16 = 16 << 20, million4 = 4 << 20;

    cl_mem x = floats(million16, 1), y = floats(million16, 1);
    float a = 0.5f;
    cl_uint counts[] = {16 << 20, 32 << 10};
    for (int i = 0; i < 2; i++)
        run(i ? "saxpy f32 32K" : "saxpy f32 16M", "saxpy", (size_t[]){counts[i], 1}, line,
            (Arg[]){ARG(counts[i]), ARG(a), ARG(x), ARG(y), {0}});
    cl_ushort low = 0xbc00, high = 0x3c00;
    cl_uint pairs[] = {8 << 20, 64 << 10};
    for (int i = 0; i < 2; i++)
        run(i ? "f16x2 clamp 128K halves" : "f16x2 clamp 16M halves", "f16x2_clamp", (size_t[]){pairs[i], 1}, line,
            (Arg[]){ARG(x), ARG(y), ARG(low), ARG(high), ARG(pairs[i]), {0}});
    cl_uint size = 1024, limit = 256;
    float left = -2.2f, top = 1.5f, step = 3.0f / 1024;
    run("mandelbrot 1024^2 x 256", "mandelbrot", (size_t[]){1024, 1024}, (size_t[]){16, 8},
        (Arg[]){ARG(y), ARG(size), ARG(size), ARG(limit), ARG(left), ARG(top), ARG(step), {0}});
    cl_uint first = 1, most = 1000, rounds = 64;
    run("collatz 1M", "collatz", million, line, (Arg[]){ARG(y), ARG(first), ARG(most), {0}});
    run("integer hash 1M x 64", "hash", million, line, (Arg[]){ARG(y), ARG(rounds), {0}});
    cl_uint bodies = 4096, columns = 256;
    run("N-body 4096", "nbody", (size_t[]){bodies, 1}, line, (Arg[]){ARG(y), ARG(x), ARG(bodies), {0}});
    run("row sums 16K x 256", "row_sums", (size_t[]){16384, 1}, line, (Arg[]){ARG(y), ARG(x), ARG(columns), {0}});
    run("f64 logistic map 1M x 64", "logistic", million, line, (Arg[]){ARG(y), ARG(rounds), {0}});
    double *numbers = malloc(sizeof *numbers << 20);
    cl_uint *places = malloc(sizeof *places << 20);
    for (cl_uint i = 0; i < 1 << 20; i++) numbers[i] = i * 0x1p-20, places[i] = i * 2654435761u >> 9 & 0xffff;
    cl_mem in = memory(sizeof *numbers << 20, numbers), index = memory(sizeof *places << 20, places);
    run("f64 rational function 1M", "rational", million, line, (Arg[]){ARG(y), ARG(in), {0}});
    run("gather of rows 1M x 4", "gather", million, line, (Arg[]){ARG(y), ARG(index), ARG(x), {0}});
    cl_uint n = 512;
    cl_mem product = memory(n * n * sizeof(float), NULL);
    run("matmul 512^3", "matmul", (size_t[]){n, n}, (size_t[]){16, 16},
        (Arg[]){ARG(x), ARG(y), ARG(product), ARG(n), ARG(n), ARG(n), {0}});
    run("block reduction 16M", "block_sum", (size_t[]){million16 / 8, 1}, line, (Arg[]){ARG(x), ARG(counts[0]), ARG(y), {0}});
    cl_uint width = 1024;
    run("softmax 4096 x 1024", "softmax", (size_t[]){4096 * 256, 1}, line, (Arg[]){ARG(x), ARG(y), ARG(width), {0}});
    unsigned char *bytes = malloc(million16);
    unsigned state = 9;
    for (size_t i = 0; i < million16; i++) bytes[i] = (state = state * 1664525u + 1013904223u) >> 24;
    cl_mem data = memory(million16, bytes);
    static const cl_uint zeros[256];
    cl_mem bins = memory(sizeof zeros, zeros);
    run("histogram 16M", "histogram", (size_t[]){million16 / 16, 1}, line, (Arg[]){ARG(data), ARG(counts[0]), ARG(bins), {0}});
    cl_uint pixels = 2048;
    run("stencil 2048^2", "stencil", (size_t[]){pixels, pixels}, (size_t[]){32, 8}, (Arg[]){ARG(y), ARG(x), ARG(pixels), {0}});
    run("transpose 2048^2", "transpose", (size_t[]){pixels, pixels / 4}, (size_t[]){32, 8},
        (Arg[]){ARG(y), ARG(x), ARG(pixels), {0}});
    run("32K blocks of a warp", "normalize_rows", (size_t[]){million4 / 4, 1}, (size_t[]){32, 1}, (Arg[]){ARG(y), ARG(x), {0}});
    return 0;
}
