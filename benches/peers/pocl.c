// The functions of the peers' table in OpenCL C, on PoCL: a compiler (LLVM) in place of an interpreter, and no PTX.
//
//   apt-get install pocl-opencl-icd ocl-icd-opencl-dev
//   cc -O2 benches/peers/pocl.c -lOpenCL -o target/pocl && POCL_MAX_PTHREAD_COUNT=1 target/pocl
//
// prints the least of five times, and that of the first launch, which compiles the kernel: processor time, as the table has.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const char *SOURCE =
    "kernel void saxpy(uint n, float a, global const float *x, global float *y) {"
    "  uint i = get_global_id(0); if (i < n) y[i] = fma(a, x[i], y[i]); }"
    "kernel void gemm(global const float *a, global const float *b, global float *c, uint n) {"
    "  uint column = get_global_id(0), row = get_global_id(1); float sum = 0;"
    "  for (uint k = 0; k < n; k++) sum = fma(a[row * n + k], b[k * n + column], sum);"
    "  c[row * n + column] = sum; }";

static void check(cl_int error, const char *what) {
    if (error != CL_SUCCESS) {
        fprintf(stderr, "%s: OpenCL error %d\n", what, error);
        exit(1);
    }
}

// Processor time of all threads.
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static cl_mem array(cl_context context, size_t count, float step) {
    float *elements = malloc(count * sizeof *elements);
    for (size_t i = 0; i < count; i++) elements[i] = (i % 1000) * step - 1;
    cl_int error;
    cl_mem memory = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, count * sizeof *elements, elements, &error);
    check(error, "array");
    free(elements);
    return memory;
}

static void run(cl_command_queue queue, cl_kernel kernel, const char *name, cl_uint axes, const size_t *threads, const size_t *block) {
    double first = 0, least = 1e9;
    for (int i = 0; i < 6; i++) {
        double start = now();
        check(clEnqueueNDRangeKernel(queue, kernel, axes, NULL, threads, block, 0, NULL, NULL), name);
        check(clFinish(queue), name);
        double seconds = now() - start;
        if (i == 0) first = seconds;
        else if (seconds < least) least = seconds;
    }
    printf("| %s | %.3f ms | first launch %.1f ms |\n", name, least * 1e3, first * 1e3);
}

int main(void) {
    cl_platform_id platform;
    cl_device_id device;
    cl_int error;
    check(clGetPlatformIDs(1, &platform, NULL), "platform");
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_CPU, 1, &device, NULL), "device");
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    check(error, "context");
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &error);
    check(error, "queue");
    cl_program program = clCreateProgramWithSource(context, 1, &SOURCE, NULL, &error);
    check(error, "program");
    check(clBuildProgram(program, 1, &device, "", NULL, NULL), "build");

    cl_uint n = 1 << 20, size = 128;
    float a = 0.3f;
    cl_mem x = array(context, n, 0.003f), y = array(context, n, 0.007f);
    cl_kernel saxpy = clCreateKernel(program, "saxpy", &error);
    check(error, "saxpy");
    clSetKernelArg(saxpy, 0, sizeof n, &n);
    clSetKernelArg(saxpy, 1, sizeof a, &a);
    clSetKernelArg(saxpy, 2, sizeof x, &x);
    clSetKernelArg(saxpy, 3, sizeof y, &y);
    run(queue, saxpy, "saxpy f32 1M", 1, (size_t[]){n}, (size_t[]){256});

    cl_mem left = array(context, size * size, 0.003f), right = array(context, size * size, 0.007f);
    cl_mem product = array(context, size * size, 0);
    cl_kernel gemm = clCreateKernel(program, "gemm", &error);
    check(error, "gemm");
    clSetKernelArg(gemm, 0, sizeof left, &left);
    clSetKernelArg(gemm, 1, sizeof right, &right);
    clSetKernelArg(gemm, 2, sizeof product, &product);
    clSetKernelArg(gemm, 3, sizeof size, &size);
    run(queue, gemm, "gemm f32 128^3", 2, (size_t[]){size, size}, (size_t[]){size, 1});
    return 0;
}
