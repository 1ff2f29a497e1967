/* A program as nvcc compiles it, by hand: a fat binary with PTX is registered before main, kernels and variables under addresses of the host, and
   launches go through the configuration that `<<<...>>>` pushes. MAJOR is the CUDA version. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { unsigned x, y, z; } dim3;
typedef struct { dim3 grid, block; size_t shared; void *stream; void *attributes; unsigned count; } config_t;
typedef struct { size_t shared, constant, local; int max_threads, registers, rest[26]; } function_t;

void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit, void *tid, void *bid, void *block,
                            void *grid, int *warp);
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int ext, size_t bytes, int constant, int global);
void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name, int ext, size_t bytes, int constant, int global);
char __cudaInitModule(void **handle);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream);
int __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
int __cudaGetKernel(void **kernel, const void *host);
int __cudaLaunchKernel(void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared, void *stream);
int cudaLaunchKernel(const void *host, dim3 grid, dim3 block, void **arguments, size_t shared, void *stream);
int cudaLaunchKernel_ptsz(const void *host, dim3 grid, dim3 block, void **arguments, size_t shared, void *stream);
int cudaLaunchKernelExC(const config_t *config, const void *host, void **arguments);
int cudaMalloc(void **pointer, size_t bytes);
int cudaFree(void *pointer);
int cudaMemcpy(void *to, const void *from, size_t bytes, int kind);
int cudaMemcpy_ptds(void *to, const void *from, size_t bytes, int kind);
int cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, int kind);
int cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height);
int cudaMemset(void *pointer, int value, size_t bytes);
int cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset, int kind);
int cudaMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset, int kind);
int cudaGetSymbolSize(size_t *bytes, const void *symbol);
int cudaDeviceSynchronize(void);
int cudaDeviceReset(void);
int cudaGetLastError(void);
int cudaPeekAtLastError(void);
const char *cudaGetErrorName(int error);
const char *cudaGetErrorString(int error);
int cudaFuncGetAttributes(function_t *attributes, const void *host);
int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *host, int block, size_t shared);
int cudaRuntimeGetVersion(int *version);
int cudaSetDevice(int device);
int cudaGetDevice(int *device);
int cudaGetDeviceCount(int *count);
int cudaDeviceCanAccessPeer(int *can, int device, int peer);
int cudaDeviceEnablePeerAccess(int peer, unsigned flags);
int cudaDeviceDisablePeerAccess(int peer);
int cudaDeviceGetP2PAttribute(int *value, int attribute, int from, int to);
int cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes);
int cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes, void *stream);
int cudaStreamCreate(void **stream);
int cudaStreamDestroy(void *stream);
int cudaStreamSynchronize(void *stream);
int cudaGetExportTable(const void **table, const void *id);
#if MAJOR == 12
int cudaGetDeviceProperties_v2(void *properties, int device);
#define cudaGetDeviceProperties cudaGetDeviceProperties_v2
#define PROPERTIES 1032
#define NODE "libcudart.so.12"
#else
int cudaGetDeviceProperties(void *properties, int device);
#define PROPERTIES 1008
#define NODE "libcudart.so.13"
#endif

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "line %d: %s (last error: %s)\n", __LINE__, #condition, cudaGetErrorName(cudaPeekAtLastError())); \
            exit(1); \
        } \
    } while (0)
#define OK(call) CHECK((call) == 0)

static const char PTX[] =
    ".version 8.0\n.target sm_70\n.address_size 64\n"
    ".const .align 4 .f32 factor = 0f3F800000;\n"
    ".global .align 4 .u32 launches;\n"
    ".global .attribute(.managed) .align 4 .u32 shared_count;\n"
    ".visible .entry scale(.param .u64 p, .param .u32 n)\n{\n"
    ".reg .pred %p; .reg .b32 %r<6>; .reg .f32 %f<3>; .reg .b64 %d<4>;\n"
    "ld.param.u64 %d1, [p]; ld.param.u32 %r1, [n];\n"
    "mov.u32 %r2, %tid.x; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mad.lo.s32 %r2, %r3, %r4, %r2;\n"
    "setp.ge.u32 %p, %r2, %r1;\n@%p bra done;\n"
    "mul.wide.u32 %d2, %r2, 4; add.s64 %d3, %d1, %d2; ld.global.f32 %f1, [%d3];\n"
    "ld.const.f32 %f2, [factor]; mul.f32 %f1, %f1, %f2; st.global.f32 [%d3], %f1;\n"
    "setp.ne.u32 %p, %r2, 0;\n@%p bra done;\n"
    "red.global.add.u32 [launches], 1;\nred.global.add.u32 [shared_count], 1;\n"
    "done: ret;\n}\n";

static unsigned char fat_binary[16 + 64 + (sizeof PTX + 7) / 8 * 8] __attribute__((aligned(8)));
static struct { uint32_t magic, version; void *data, *rest; } wrapper = {0x466243b1, 1, fat_binary, NULL};
static void **handle;
/* What stands on the host for the kernel and the variables. */
static void scale(void) {}
static void nobody(void) {}
static float factor;
static unsigned launches, *shared_count;

static void put(size_t offset, uint64_t value, int bytes) { memcpy(fat_binary + offset, &value, bytes); }

static void forget(void) { __cudaUnregisterFatBinary(handle); }

/* As a destructor of a static object: the main thread's own values have been dropped. */
static float *kept;
static void last_calls(void) {
    unsigned n = 4;
    int device = -1;
    void *arguments[] = {&kept, &n};
    dim3 one = {1, 1, 1}, four = {4, 1, 1};
    if (!kept) {
        return;
    }
    OK(cudaSetDevice(0));
    OK(cudaGetDevice(&device));
    CHECK(device == 0);
    OK(cudaMemset(kept, 0, 16));
    OK(cudaLaunchKernel((const void *)scale, one, four, arguments, 0, NULL));
    OK(cudaDeviceSynchronize());
    OK(cudaFree(kept));
    CHECK(__cudaPushCallConfiguration(one, four, 0, NULL) == 1 && cudaGetLastError() == 4);
    puts("last calls");
}

/* Another thread begins with device 0. */
static void *other_thread(void *unused) {
    int device = -1;
    OK(cudaGetDevice(&device));
    CHECK(device == 0);
    return unused;
}

/* Two devices, as the samples with several use them: each scales its part, and one reaches the memory of the other. */
static void on_two_devices(void) {
    enum { N = 64 };
    int count = 0, device = -1, can = 0, rank = -1;
    float values[N], back[N], *data[2];
    void *streams[2];
    unsigned n = N;
    dim3 one = {1, 1, 1}, all = {N, 1, 1};
    pthread_t thread;
    OK(cudaGetDeviceCount(&count));
    CHECK(count == 2);
    CHECK(cudaSetDevice(2) == 101);
    for (int i = 0; i < N; i++) {
        values[i] = i;
    }
    for (int i = 0; i < 2; i++) {
        float by = i + 2;
        OK(cudaSetDevice(i));
        OK(cudaStreamCreate(&streams[i]));
        OK(cudaMalloc((void **)&data[i], sizeof values));
        OK(cudaMemcpy(data[i], values, sizeof values, 1));
        /* Each device has its own variables. */
        OK(cudaMemcpyToSymbol(&factor, &by, sizeof by, 0, 1));
    }
    OK(pthread_create(&thread, NULL, other_thread, NULL));
    OK(pthread_join(thread, NULL));
    for (int i = 0; i < 2; i++) {
        void *arguments[] = {&data[i], &n};
        OK(cudaSetDevice(i));
        OK(cudaGetDevice(&device));
        CHECK(device == i);
        OK(cudaLaunchKernel((const void *)scale, one, all, arguments, 0, streams[i]));
        /* The other device's stream is no place for this device's kernels. */
        CHECK(cudaLaunchKernel((const void *)scale, one, all, arguments, 0, streams[1 - i]) == 400);
    }
    for (int i = 0; i < 2; i++) {
        OK(cudaStreamSynchronize(streams[i]));
        OK(cudaMemcpy(back, data[i], sizeof back, 4));
        CHECK(back[10] == 10 * (i + 2));
    }
    OK(cudaMemcpyPeer(data[0], 0, data[1], 1, 4 * N));
    OK(cudaMemcpyPeerAsync(data[1], 1, data[0], 0, 4, streams[1]));
    OK(cudaDeviceSynchronize());
    OK(cudaMemcpy(back, data[0], sizeof back, 4));
    CHECK(back[10] == 30);

    OK(cudaSetDevice(0));
    OK(cudaDeviceCanAccessPeer(&can, 0, 1));
    OK(cudaDeviceGetP2PAttribute(&rank, 1, 0, 1));
    CHECK(can == 1 && rank == 0);
    CHECK(cudaDeviceDisablePeerAccess(1) == 705);
    CHECK(cudaDeviceEnablePeerAccess(0, 0) == 101);
    OK(cudaDeviceEnablePeerAccess(1, 0));
    CHECK(cudaDeviceEnablePeerAccess(1, 0) == 704);
    void *arguments[] = {&data[1], &n};
    OK(cudaLaunchKernel((const void *)scale, one, all, arguments, 0, NULL));
    OK(cudaDeviceSynchronize());
    OK(cudaMemcpy(back, data[1], sizeof back, 4));
    CHECK(back[10] == 60);

    /* Device 1 begins anew, and device 0 no longer reaches what it has. */
    OK(cudaSetDevice(1));
    OK(cudaDeviceReset());
    OK(cudaMalloc((void **)&data[1], sizeof values));
    OK(cudaSetDevice(0));
    OK(cudaMemcpy(back, data[0], sizeof back, 4));
    CHECK(back[10] == 30);
    OK(cudaLaunchKernel((const void *)scale, one, all, arguments, 0, NULL));
    CHECK(cudaDeviceSynchronize() == 700);
    puts("two devices");
}

__attribute__((constructor)) static void before_main(void) {
    size_t padded = (sizeof PTX + 7) / 8 * 8;
    put(0, 0xba55ed50, 4), put(4, 1, 2), put(6, 16, 2), put(8, 64 + padded, 8);
    put(16, 1, 2), put(18, 0x101, 2), put(20, 64, 4), put(24, padded, 8), put(16 + 28, 70, 4), put(16 + 40, 0x11, 8);
    memcpy(fat_binary + 80, PTX, sizeof PTX);
    handle = __cudaRegisterFatBinary(&wrapper);
    __cudaRegisterFunction(handle, (const char *)scale, "scale", "scale", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFunction(handle, (const char *)nobody, "nobody", "nobody", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterVar(handle, (char *)&factor, "factor", "factor", 0, 4, 1, 0);
    __cudaRegisterVar(handle, (char *)&launches, "launches", "launches", 0, 4, 0, 0);
    __cudaRegisterManagedVar(handle, (void **)&shared_count, "shared_count", "shared_count", 0, 4, 0, 0);
    __cudaRegisterFatBinaryEnd(handle);
    atexit(forget);
    atexit(last_calls);
}

/* What nvcc makes of `scale<<<grid, block>>>(data, n)`. */
static int launch_scale(float *data, unsigned n) {
    static void *kernel;
    dim3 grid, block;
    size_t shared;
    void *stream, *arguments[] = {&data, &n};
    if (!kernel) {
        OK(__cudaGetKernel(&kernel, (const void *)scale));
    }
    OK(__cudaPopCallConfiguration(&grid, &block, &shared, &stream));
    return __cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}

static void *another_thread(void *unused) {
    int device = -1;
    CHECK(cudaGetLastError() == 0);
    OK(cudaGetDevice(&device));
    CHECK(device == 0);
    return unused;
}

int main(int argc, char **words) {
    enum { N = 1000 };
    float values[N], back[N], two = 2, three = 3;
    dim3 grid = {(N + 255) / 256, 1, 1}, block = {256, 1, 1}, too_many = {2048, 1, 1}, none = {0, 1, 1};
    unsigned count = 0, n = N;
    void *data, *stream;
    if (argc > 1 && !strcmp(words[1], "last")) {
        OK(cudaMalloc((void **)&kept, 16));
        OK(__cudaPushCallConfiguration(grid, block, 0, NULL));
        OK(launch_scale(kept, 4));
        return 0;
    }
    if (argc > 1 && !strcmp(words[1], "devices")) {
        on_two_devices();
        return 0;
    }
    for (int i = 0; i < N; i++) {
        values[i] = i + 0.5f;
    }
#ifdef ARCHIVE
    /* It is inside this program, which exports nothing. */
    CHECK(!dlsym(RTLD_DEFAULT, "cudaMalloc"));
#else
    CHECK(dlvsym(RTLD_DEFAULT, "cudaMalloc", NODE));
#endif

    /* The managed variable is there before anything else has been called. */
    CHECK(__cudaInitModule(handle) && shared_count && *shared_count == 0);
    OK(cudaMalloc(&data, sizeof values));
    OK(cudaMemcpy(data, values, sizeof values, 1));
    OK(cudaMemcpyToSymbol(&factor, &two, sizeof two, 0, 1));
    /* Arguments of a launch may launch, too. */
    CHECK(__cudaPushCallConfiguration(grid, block, 0, NULL) == 0);
    CHECK(__cudaPushCallConfiguration(grid, block, 0, NULL) == 0);
    OK(launch_scale(data, N));
    OK(launch_scale(data, N));
    OK(cudaDeviceSynchronize());
    OK(cudaMemcpy_ptds(back, data, sizeof back, 2));
    for (int i = 0; i < N; i++) {
        CHECK(back[i] == values[i] * 4);
    }
    OK(cudaMemcpyFromSymbol(&count, &launches, sizeof count, 0, 2));
    CHECK(count == 2 && *shared_count == 2);

    /* The other ways to launch. */
    void *arguments[] = {&data, &n};
    OK(cudaStreamCreate(&stream));
    config_t config = {grid, block, 0, stream, NULL, 0};
    OK(cudaLaunchKernelExC(&config, (const void *)scale, arguments));
    OK(cudaLaunchKernel((const void *)scale, grid, block, arguments, 0, stream));
    OK(cudaStreamSynchronize(stream));
    OK(cudaStreamDestroy(stream));
    OK(cudaLaunchKernel_ptsz((const void *)scale, grid, block, arguments, 0, NULL));
    OK(cudaMemcpy_ptds(back, data, sizeof back, 2));
    CHECK(back[7] == values[7] * 32);

    /* Errors: each is returned, and stays this thread's last one until it is asked for. */
    CHECK(cudaLaunchKernel((const void *)scale, grid, too_many, arguments, 0, NULL) == 9);
    CHECK(cudaLaunchKernel((const void *)scale, none, block, arguments, 0, NULL) == 9);
    CHECK(cudaPeekAtLastError() == 9);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, another_thread, NULL) == 0 && pthread_join(thread, NULL) == 0);
    CHECK(cudaGetLastError() == 9 && cudaGetLastError() == 0);
    CHECK(cudaLaunchKernel((const void *)main, grid, block, arguments, 0, NULL) == 98);
    CHECK(cudaLaunchKernel((const void *)nobody, grid, block, arguments, 0, NULL) == 98);
    CHECK(cudaMemcpyToSymbol(&two, &two, sizeof two, 0, 1) == 13);
    CHECK(cudaMemcpyToSymbol(&factor, &two, sizeof two, 1, 1) == 1);
    CHECK(cudaMemcpy(data, values, sizeof values, 17) == 21);
    CHECK(cudaSetDevice(5000) == 101);
    dim3 unused;
    size_t bytes;
    CHECK(__cudaPopCallConfiguration(&unused, &unused, &bytes, &stream) == 52);
    const void *table = &two;
    CHECK(cudaGetExportTable(&table, &two) == 801 && !table);
    CHECK(!strcmp(cudaGetErrorName(9), "cudaErrorInvalidConfiguration"));
    CHECK(!strcmp(cudaGetErrorString(700), "an illegal memory access was encountered"));
    CHECK(!strcmp(cudaGetErrorString(0), "no error"));
    CHECK(!strcmp(cudaGetErrorName(12345), "unrecognized error code"));
    cudaGetLastError();

    /* Structures. */
    int properties[PROPERTIES / 4 + 1], version, blocks = 0;
    properties[PROPERTIES / 4] = 4711;
    OK(cudaGetDeviceProperties(properties, 0));
    CHECK(properties[PROPERTIES / 4] == 4711);
    CHECK(properties[360 / 4] == 9 && properties[364 / 4] == 0);
    CHECK(properties[308 / 4] == 32);
    OK(cudaRuntimeGetVersion(&version));
    CHECK(version / 1000 == MAJOR);
    function_t attributes;
    OK(cudaFuncGetAttributes(&attributes, (const void *)scale));
    CHECK(attributes.max_threads == 1024 && attributes.constant == 4 && attributes.rest[0] == 70);
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, (const void *)scale, 1024, 0));
    CHECK(blocks == 2);
    OK(cudaGetSymbolSize(&bytes, &launches));
    CHECK(bytes == 4);

    /* Rows. */
    void *rows;
    size_t pitch;
    OK(cudaMallocPitch(&rows, &pitch, 12, 3));
    OK(cudaMemcpy2D(rows, pitch, values, 16, 12, 3, 1));
    OK(cudaMemcpy2D(back, 20, rows, pitch, 12, 3, 2));
    CHECK(back[5] == values[4] && back[12] == values[10]);
    OK(cudaFree(rows));

    /* After a reset the kernels are there as at the beginning. */
    OK(cudaFree(data));
    OK(cudaDeviceReset());
    OK(cudaMalloc(&data, sizeof values));
    OK(cudaMemcpy(data, values, sizeof values, 1));
    OK(cudaMemcpyToSymbol(&factor, &three, sizeof three, 0, 1));
    OK(cudaLaunchKernel((const void *)scale, grid, block, arguments, 0, NULL));
    OK(cudaMemcpy(back, data, sizeof back, 2));
    CHECK(back[999] == values[999] * 3);

    /* A fault of a kernel is the error of what waits for it, and of everything after. */
    OK(cudaFree(data));
    OK(cudaLaunchKernel((const void *)scale, grid, block, arguments, 0, NULL));
    CHECK(cudaDeviceSynchronize() == 700);
    CHECK(cudaMalloc(&data, 4) == 700);
    CHECK(cudaGetLastError() == 700);
    puts("done");
    return 0;
}
