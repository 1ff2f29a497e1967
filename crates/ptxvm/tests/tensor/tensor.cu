// Asks a GPU what copies of boxes of tensors do: one line of text for each case, with what was asked and what came of it.
//
//     nvcc -std=c++17 -gencode arch=compute_90a,code=sm_90a -o tensor tensor.cu && ./tensor > out.txt
//
// `./tensor PART PARTS` runs every PARTS-th case from PART on: a case that faults takes its process with it, so parts side by side
// save minutes.
//
// Global memory is made of 32-bit words that tell where they are from (`word`), so that of every byte of shared memory it can be told
// which byte of the tensor it is. What nobody wrote has 0xa5. A process of its own runs the cases, so that one that faults ends with its
// context, and the next goes on behind it.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <cuda.h>
#include <cuda_runtime.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum Op { LOAD, STORE, REDUCE, PREFETCH, MULTICAST, REPLACE, CALIBRATE, ENCODE };
static const char* const OPS[] = {"load", "store", "reduce", "prefetch", "multicast", "replace", "calibrate", "encode"};
static const char* const REDUCTIONS[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor"};

constexpr unsigned SHARED = 32768;       // bytes that are looked at
constexpr unsigned GLOBAL = 32 << 20;    // bytes of the tensor's memory
constexpr unsigned WRITTEN = 65536;      // of these what stores may change
constexpr unsigned char UNTOUCHED = 0xa5;
constexpr double LONGEST = 240;          // seconds

struct Job {
    int op, rank, im2col, reduction;
    int coordinates[5];
    int offsets[3];
    unsigned place;    // of the box in shared memory
    unsigned bytes;    // that the barrier expects
    unsigned mask;     // of a multicast
    int field, ordinal;
    unsigned long long value;
};

struct Answer {
    unsigned long long before, after;
    unsigned done;
};

__device__ unsigned address_of(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

#define LOAD_TILED(N, LIST, ...) \
    asm volatile("cp.async.bulk.tensor." #N "d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, " LIST "], [%2];" ::"r"(dst), "l"(map), "r"(bar), __VA_ARGS__ : "memory")
#define LOAD_CAST(N, LIST, ...) \
    asm volatile("cp.async.bulk.tensor." #N "d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, " LIST "], [%2], %3;" ::"r"(dst), "l"(map), "r"(bar), "h"((unsigned short)job.mask), __VA_ARGS__ : "memory")
#define STORE_TILED(N, LIST, ...) \
    asm volatile("cp.async.bulk.tensor." #N "d.global.shared::cta.tile.bulk_group [%0, " LIST "], [%1];" ::"l"(map), "r"(dst), __VA_ARGS__ : "memory")
#define STORE_COLUMNS(N, LIST, ...) \
    asm volatile("cp.async.bulk.tensor." #N "d.global.shared::cta.im2col_no_offs.bulk_group [%0, " LIST "], [%1];" ::"l"(map), "r"(dst), __VA_ARGS__ : "memory")
#define REDUCE_TILED(OP, N, LIST, ...) \
    asm volatile("cp.reduce.async.bulk.tensor." #N "d.global.shared::cta." #OP ".tile.bulk_group [%0, " LIST "], [%1];" ::"l"(map), "r"(dst), __VA_ARGS__ : "memory")
#define REDUCE_COLUMNS(OP, N, LIST, ...) \
    asm volatile("cp.reduce.async.bulk.tensor." #N "d.global.shared::cta." #OP ".im2col_no_offs.bulk_group [%0, " LIST "], [%1];" ::"l"(map), "r"(dst), __VA_ARGS__ : "memory")
#define PREFETCH_TILED(N, LIST, ...) \
    asm volatile("cp.async.bulk.prefetch.tensor." #N "d.L2.global.tile [%0, " LIST "];" ::"l"(map), __VA_ARGS__ : "memory")

#define C0 "r"(c[0])
#define C1 C0, "r"(c[1])
#define C2 C1, "r"(c[2])
#define C3 C2, "r"(c[3])
#define C4 C3, "r"(c[4])

#define FOR_RANKS_3(WHAT)                                    \
    switch (job.rank) {                                      \
    case 1: WHAT(1, "{%3}", C0); break;                      \
    case 2: WHAT(2, "{%3,%4}", C1); break;                   \
    case 3: WHAT(3, "{%3,%4,%5}", C2); break;                \
    case 4: WHAT(4, "{%3,%4,%5,%6}", C3); break;             \
    case 5: WHAT(5, "{%3,%4,%5,%6,%7}", C4); break;          \
    }
#define FOR_RANKS_4(WHAT)                                    \
    switch (job.rank) {                                      \
    case 1: WHAT(1, "{%4}", C0); break;                      \
    case 2: WHAT(2, "{%4,%5}", C1); break;                   \
    case 3: WHAT(3, "{%4,%5,%6}", C2); break;                \
    case 4: WHAT(4, "{%4,%5,%6,%7}", C3); break;             \
    case 5: WHAT(5, "{%4,%5,%6,%7,%8}", C4); break;          \
    }
#define FOR_RANKS_2(WHAT)                                    \
    switch (job.rank) {                                      \
    case 1: WHAT(1, "{%2}", C0); break;                      \
    case 2: WHAT(2, "{%2,%3}", C1); break;                   \
    case 3: WHAT(3, "{%2,%3,%4}", C2); break;                \
    case 4: WHAT(4, "{%2,%3,%4,%5}", C3); break;             \
    case 5: WHAT(5, "{%2,%3,%4,%5,%6}", C4); break;          \
    }
#define FOR_IMAGES_2(WHAT)                                   \
    switch (job.rank) {                                      \
    case 3: WHAT(3, "{%2,%3,%4}", C2); break;                \
    case 4: WHAT(4, "{%2,%3,%4,%5}", C3); break;             \
    case 5: WHAT(5, "{%2,%3,%4,%5,%6}", C4); break;          \
    }
#define FOR_RANKS_1(WHAT)                                    \
    switch (job.rank) {                                      \
    case 1: WHAT(1, "{%1}", C0); break;                      \
    case 2: WHAT(2, "{%1,%2}", C1); break;                   \
    case 3: WHAT(3, "{%1,%2,%3}", C2); break;                \
    case 4: WHAT(4, "{%1,%2,%3,%4}", C3); break;             \
    case 5: WHAT(5, "{%1,%2,%3,%4,%5}", C4); break;          \
    }
#define REDUCE_WITH(OP)                                                        \
    do {                                                                       \
        if (job.im2col) {                                                      \
            FOR_IMAGES_2(OP##_COLUMNS)                                         \
        } else {                                                               \
            FOR_RANKS_2(OP##_TILED)                                            \
        }                                                                      \
    } while (0)
#define ADD_TILED(...) REDUCE_TILED(add, __VA_ARGS__)
#define MIN_TILED(...) REDUCE_TILED(min, __VA_ARGS__)
#define MAX_TILED(...) REDUCE_TILED(max, __VA_ARGS__)
#define INC_TILED(...) REDUCE_TILED(inc, __VA_ARGS__)
#define DEC_TILED(...) REDUCE_TILED(dec, __VA_ARGS__)
#define AND_TILED(...) REDUCE_TILED(and, __VA_ARGS__)
#define OR_TILED(...) REDUCE_TILED(or, __VA_ARGS__)
#define XOR_TILED(...) REDUCE_TILED(xor, __VA_ARGS__)
#define ADD_COLUMNS(...) REDUCE_COLUMNS(add, __VA_ARGS__)

__device__ void load(const Job& job, unsigned dst, const CUtensorMap* map, unsigned bar)
{
    const int* c = job.coordinates;
    if (!job.im2col) {
        FOR_RANKS_3(LOAD_TILED)
        return;
    }
    unsigned short x = job.offsets[0], y = job.offsets[1], z = job.offsets[2];
    switch (job.rank) {
    case 3:
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3,%4,%5}], [%2], {%6};" ::"r"(dst), "l"(map), "r"(bar), C2, "h"(x) : "memory");
        break;
    case 4:
        asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3,%4,%5,%6}], [%2], {%7,%8};" ::"r"(dst), "l"(map), "r"(bar), C3, "h"(x), "h"(y) : "memory");
        break;
    case 5:
        asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3,%4,%5,%6,%7}], [%2], {%8,%9,%10};" ::"r"(dst), "l"(map), "r"(bar), C4, "h"(x), "h"(y), "h"(z) : "memory");
        break;
    }
}

__device__ void reduce(const Job& job, unsigned dst, const CUtensorMap* map)
{
    const int* c = job.coordinates;
    if (job.im2col) {
        FOR_IMAGES_2(ADD_COLUMNS)
        return;
    }
    switch (job.reduction) {
    case 0: FOR_RANKS_2(ADD_TILED) break;
    case 1: FOR_RANKS_2(MIN_TILED) break;
    case 2: FOR_RANKS_2(MAX_TILED) break;
    case 3: FOR_RANKS_2(INC_TILED) break;
    case 4: FOR_RANKS_2(DEC_TILED) break;
    case 5: FOR_RANKS_2(AND_TILED) break;
    case 6: FOR_RANKS_2(OR_TILED) break;
    case 7: FOR_RANKS_2(XOR_TILED) break;
    }
}

#define REPLACE_32(NAME) \
    asm volatile("tensormap.replace.tile." NAME ".shared::cta.b1024.b32 [%0], %1;" ::"r"(place), "r"((unsigned)value) : "memory")
#define REPLACE_AT(NAME, TYPE, CONSTRAINT, VALUE)                                                                                                    \
    switch (ordinal) {                                                                                                                               \
    case 0: asm volatile("tensormap.replace.tile." NAME ".shared::cta.b1024." TYPE " [%0], 0, %1;" ::"r"(place), CONSTRAINT(VALUE) : "memory"); break; \
    case 1: asm volatile("tensormap.replace.tile." NAME ".shared::cta.b1024." TYPE " [%0], 1, %1;" ::"r"(place), CONSTRAINT(VALUE) : "memory"); break; \
    case 2: asm volatile("tensormap.replace.tile." NAME ".shared::cta.b1024." TYPE " [%0], 2, %1;" ::"r"(place), CONSTRAINT(VALUE) : "memory"); break; \
    case 3: asm volatile("tensormap.replace.tile." NAME ".shared::cta.b1024." TYPE " [%0], 3, %1;" ::"r"(place), CONSTRAINT(VALUE) : "memory"); break; \
    case 4: asm volatile("tensormap.replace.tile." NAME ".shared::cta.b1024." TYPE " [%0], 4, %1;" ::"r"(place), CONSTRAINT(VALUE) : "memory"); break; \
    }

static const char* const FIELDS[] = {"global_address", "rank", "elemtype", "interleave_layout", "swizzle_mode", "fill_mode",
                                     "box_dim", "global_dim", "global_stride", "element_stride"};

__device__ void replace(unsigned place, int field, int ordinal, unsigned long long value)
{
    switch (field) {
    case 0:
        asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" ::"r"(place), "l"(value) : "memory");
        break;
    // These take immediate values.
#define IMMEDIATE(NAME, N) \
    case N: asm volatile("tensormap.replace.tile." NAME ".shared::cta.b1024.b32 [%0], " #N ";" ::"r"(place) : "memory"); break;
    case 1: REPLACE_32("rank"); break;
    case 2:
        switch (value) {
            IMMEDIATE("elemtype", 0) IMMEDIATE("elemtype", 1) IMMEDIATE("elemtype", 2) IMMEDIATE("elemtype", 3)
            IMMEDIATE("elemtype", 4) IMMEDIATE("elemtype", 5) IMMEDIATE("elemtype", 6) IMMEDIATE("elemtype", 7)
            IMMEDIATE("elemtype", 8) IMMEDIATE("elemtype", 9) IMMEDIATE("elemtype", 10) IMMEDIATE("elemtype", 11)
            IMMEDIATE("elemtype", 12)
        }
        break;
    case 3:
        switch (value) { IMMEDIATE("interleave_layout", 0) IMMEDIATE("interleave_layout", 1) IMMEDIATE("interleave_layout", 2) }
        break;
    case 4:
        switch (value) { IMMEDIATE("swizzle_mode", 0) IMMEDIATE("swizzle_mode", 1) IMMEDIATE("swizzle_mode", 2) IMMEDIATE("swizzle_mode", 3) }
        break;
    case 5:
        switch (value) { IMMEDIATE("fill_mode", 0) IMMEDIATE("fill_mode", 1) }
        break;
    case 6: REPLACE_AT("box_dim", "b32", "r", (unsigned)value) break;
    case 7: REPLACE_AT("global_dim", "b32", "r", (unsigned)value) break;
    case 8: REPLACE_AT("global_stride", "b64", "l", value) break;
    case 9: REPLACE_AT("element_stride", "b32", "r", (unsigned)value) break;
    }
}

__device__ unsigned long long raw(unsigned bar)
{
    unsigned long long word;
    asm volatile("ld.volatile.shared.b64 %0, [%1];" : "=l"(word) : "r"(bar) : "memory");
    return word;
}

__device__ void linger()
{
    long long begin = clock64();
    while (clock64() - begin < 60000) {
    }
}

__global__ void __launch_bounds__(128) work(const __grid_constant__ CUtensorMap tensor, Job job, const unsigned char* source, unsigned char* dump, Answer* answer)
{
    extern __shared__ __align__(1024) unsigned char memory[];
    __shared__ __align__(8) unsigned long long barrier;
    __shared__ __align__(128) unsigned char copy[128];
    unsigned skip = (1024 - address_of(memory) % 1024) % 1024;
    unsigned char* shared = memory + skip;
    unsigned block;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(block));
    bool is_load = job.op == LOAD || job.op == MULTICAST;
    for (unsigned i = threadIdx.x; i < SHARED; i += blockDim.x) {
        shared[i] = is_load ? UNTOUCHED : source[i];
    }
    unsigned bar = address_of(&barrier), dst = address_of(shared + job.place);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    if (job.op == MULTICAST) {
        asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
    }
    const CUtensorMap* map = &tensor;
    const int* c = job.coordinates;
    if (threadIdx.x == 0) {
        Answer result = {0, 0, 1};
        if (is_load) {
            if (job.op == LOAD || job.mask >> block & 1) {
                asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(job.bytes) : "memory");
            }
            result.before = raw(bar);
            if (job.op == MULTICAST) {
                if (block == 0) {
                    FOR_RANKS_4(LOAD_CAST)
                }
            } else {
                load(job, dst, map, bar);
            }
            linger();
            result.after = raw(bar);
            asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
            unsigned done = 0;
            for (int i = 0; i < 4 && !done; i++) {
                asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0, 100; selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(bar) : "memory");
            }
            result.done = done;
        } else if (job.op == STORE) {
            if (job.im2col) {
                FOR_IMAGES_2(STORE_COLUMNS)
            } else {
                FOR_RANKS_2(STORE_TILED)
            }
        } else if (job.op == REDUCE) {
            reduce(job, dst, map);
        } else if (job.op == PREFETCH) {
            FOR_RANKS_1(PREFETCH_TILED)
        } else if (job.op == REPLACE) {
            for (int i = 0; i < 128; i++) {
                copy[i] = reinterpret_cast<const unsigned char*>(map)[i];
            }
            replace(address_of(copy), job.field, job.ordinal, job.value);
        } else if (job.op == CALIBRATE) {
            result.before = raw(bar);
            asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(job.bytes) : "memory");
            result.after = raw(bar);
        }
        if (job.op == STORE || job.op == REDUCE) {
            asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group 0;" ::: "memory");
        }
        answer[block] = result;
    }
    __syncthreads();
    if (job.op == REPLACE) {
        dump[threadIdx.x] = copy[threadIdx.x];
    } else {
        for (unsigned i = threadIdx.x; i < SHARED; i += blockDim.x) {
            dump[block * SHARED + i] = shared[i];
        }
    }
    if (job.op == MULTICAST) {
        asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
    }
}

// What a case asks for.
struct Case {
    Op op = LOAD;
    bool im2col = false;
    int elem = 7, rank = 2;
    unsigned address = 4096;    // from the beginning of the tensor's memory
    uint64_t extents[5] = {1, 1, 1, 1, 1}, strides[4] = {0, 0, 0, 0};
    uint32_t box[5] = {1, 1, 1, 1, 1}, steps[5] = {1, 1, 1, 1, 1};
    int lower[3] = {0, 0, 0}, upper[3] = {0, 0, 0};
    uint32_t channels = 1, pixels = 1;
    int interleave = 0, swizzle = 0, promotion = 0, fill = 0;
    int coordinates[5] = {0, 0, 0, 0, 0}, offsets[3] = {0, 0, 0};
    unsigned place = 0;
    int reduction = 0;
    int pattern = 0;            // of global memory; that of shared memory before a store or a reduction is the same with another seed
    unsigned mask = 0;
    int field = 0, ordinal = 0;
    unsigned long long value = 0;
    unsigned bytes = 0;         // expected, if not the product
};

static const int BITS[16] = {8, 16, 32, 32, 64, 64, 16, 32, 64, 16, 32, 32, 32, 4, 4, 6};

static uint64_t mix(uint64_t z)
{
    z += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

// The words that memory is made of. 0: each tells its place. 1 to 4: values of f16, bf16, f32 and f64 with rounding, infinities, NaNs and
// subnormal numbers. 5: random bits, small numbers among them.
static uint32_t word(int pattern, uint64_t seed, uint64_t i)
{
    static const uint16_t HALVES[16] = {0, 0x8000, 1, 0x8001, 0x3ff, 0x400, 0x83ff, 0x3c00, 0xbc01, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0x7c01, 0xffff};
    static const uint16_t BFLOATS[16] = {0, 0x8000, 1, 0x8001, 0x7f, 0x80, 0x807f, 0x3f80, 0xbf81, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fc0, 0x7f81, 0xffff};
    static const uint32_t FLOATS[16] = {0, 0x80000000, 1, 0x80000001, 0x7fffff, 0x800000, 0x807fffff, 0x3f800000, 0xbf800001, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 0xffffffff};
    static const uint64_t DOUBLES[16] = {0, 1ull << 63, 1, 1ull << 63 | 1, 0xfffffffffffffull, 1ull << 52, 0x800fffffffffffffull, 0x3ff0000000000000ull, 0xbff0000000000001ull, 0x7fefffffffffffffull, 0xffefffffffffffffull, 0x7ff0000000000000ull, 0xfff0000000000000ull, 0x7ff8000000000000ull, 0x7ff0000000000001ull, 0xffffffffffffffffull};
    uint64_t r = mix(seed * 0x100000000ull + i);
    auto half = [&](const uint16_t* special, uint64_t bits, int exponent) -> uint32_t {
        if (bits & 3) return special[bits >> 2 & 15];
        return (bits >> 8 & (0x8000 | ((1u << exponent) - 1) | 3u << exponent)) | 14u << exponent;
    };
    switch (pattern) {
    case 1: return half(HALVES, r & 0xffffffff, 10) | half(HALVES, r >> 32, 10) << 16;
    case 2: {
        auto bf = [&](uint64_t bits) -> uint32_t { return bits & 3 ? BFLOATS[bits >> 2 & 15] : (bits >> 8 & 0x81ff) | 0x3e00; };
        return bf(r & 0xffffffff) | bf(r >> 32) << 16;
    }
    case 3: return r & 3 ? FLOATS[r >> 2 & 15] : (uint32_t)((r >> 8 & 0x81ffffff) | 0x3e000000);
    case 4: {
        uint64_t s = mix(seed * 0x100000000ull + i / 2);
        uint64_t d = s & 3 ? DOUBLES[s >> 2 & 15] : (mix(s) & 0x803fffffffffffffull) | 0x3fc0000000000000ull;
        return i & 1 ? d >> 32 : d;
    }
    case 5: return r & 1 ? (uint32_t)(r >> 32) : (uint32_t)(r >> 60);
    default: return (uint32_t)(i + seed * 0x01000000u) * 0x9e3779b1u + 0x7f4a7c15u;
    }
}

static std::vector<Case> cases;

static uint64_t state = 1;
static uint64_t below(uint64_t n)
{
    state = mix(state);
    return state % n;
}

static int element_bytes(int elem) { return BITS[elem] / 8 ? BITS[elem] / 8 : 1; }

// Strides that leave gaps, of so many bytes times a multiple of 16 or 32.
static void lay_out(Case& c, unsigned gap = 1)
{
    unsigned unit = c.interleave == 2 || c.elem >= 14 ? 32 : 16;
    uint64_t bytes = (c.extents[0] * BITS[c.elem] + 7) / 8;
    for (int i = 0; i + 1 < c.rank; i++) {
        bytes = (bytes + unit - 1) / unit * unit + gap * unit;
        c.strides[i] = bytes;
        bytes *= c.extents[i + 1];
    }
}

static void all_types_and_ranks()
{
    static const int WHERE[7] = {0, 1, 2, 3, 4, 5, 6};
    for (int rank = 1; rank <= 5; rank++) {
        for (int elem = 0; elem < 16; elem++) {
            for (int where : WHERE) {
                if (elem >= 13 && where > 4) continue;
                Case c;
                c.rank = rank;
                c.elem = elem;
                int row = elem >= 14 ? 128 : elem == 13 ? 64 : 32 / element_bytes(elem);
                c.extents[0] = elem >= 14 ? 256 : row + row / 2 + (elem == 13 ? 2 : 1);
                c.box[0] = row;
                for (int i = 1; i < rank; i++) {
                    c.extents[i] = 3 + i % 2;
                    c.box[i] = 2;
                }
                lay_out(c);
                for (int i = 0; i < rank; i++) {
                    int e = (int)c.extents[i], b = (int)c.box[i];
                    int unit = i == 0 && elem >= 14 ? 128 : i == 0 && elem == 13 ? 32 : 1;
                    switch (where) {
                    case 0: c.coordinates[i] = 0; break;
                    case 1: c.coordinates[i] = i == 0 ? unit : 1; break;
                    case 2: c.coordinates[i] = i % 2 ? 1 : -unit; break;
                    case 3: c.coordinates[i] = i == 0 ? (e / unit - 1) * unit : e - 1; break;
                    case 4: c.coordinates[i] = i == rank - 1 ? -b : 0; break;
                    case 5: c.coordinates[i] = i == 0 ? INT32_MIN : INT32_MAX; break;
                    case 6: c.coordinates[i] = i == 0 ? 3 : i == 1 ? -1 : e - 1; break;
                    }
                }
                cases.push_back(c);
            }
        }
    }
}

static void swizzles()
{
    for (int swizzle = 0; swizzle < 7; swizzle++) {
        static const int SPANS[7] = {256, 32, 64, 128, 128, 128, 128};
        for (int row : {16, 32, 48, 64, 80, 96, 112, 128, 192, 256}) {
            if (row > SPANS[swizzle]) continue;
            for (unsigned place : {0u, 128u, 640u}) {
                if (place == 640 && row % 48) continue;
                for (int elem : {0, 6, 7, 8}) {
                    if (elem != 7 && (place || row % 32)) continue;
                    Case c;
                    c.swizzle = swizzle;
                    c.elem = elem;
                    c.extents[0] = 512 / element_bytes(elem);
                    c.extents[1] = 40;
                    c.box[0] = row / element_bytes(elem);
                    c.box[1] = 11;
                    c.place = place;
                    c.coordinates[1] = elem == 6 ? 35 : 1;
                    c.coordinates[0] = elem == 0 ? -3 : 1;
                    lay_out(c);
                    cases.push_back(c);
                    if (elem == 7 && place == 0) {
                        c.rank = 3;
                        c.box[1] = 3;
                        c.box[2] = 3;
                        c.extents[2] = 5;
                        lay_out(c);
                        cases.push_back(c);
                    }
                }
            }
        }
        // Groups of less than a byte.
        for (int elem = 13; elem < 16; elem++) {
            Case c;
            c.swizzle = swizzle;
            c.elem = elem;
            c.extents[0] = 256;
            c.extents[1] = 20;
            c.box[0] = elem == 13 ? 64 : 128;
            c.box[1] = 9;
            lay_out(c);
            cases.push_back(c);
        }
    }
}

static void fills_and_values()
{
    for (int fill = 0; fill < 2; fill++) {
        for (int elem : {6, 7, 8, 9, 10, 11, 12}) {
            for (int pattern : {0, 3}) {
                if (pattern == 3 && BITS[elem] != 32) continue;
                for (int swizzle : {0, 3}) {
                    Case c;
                    c.fill = fill;
                    c.elem = elem;
                    c.pattern = pattern;
                    c.swizzle = swizzle;
                    c.extents[0] = 37;
                    c.extents[1] = 6;
                    c.box[0] = 64 / element_bytes(elem);
                    c.box[1] = 4;
                    lay_out(c);
                    c.coordinates[0] = 37 - 64 / element_bytes(elem) + 2;
                    c.coordinates[1] = -1;
                    cases.push_back(c);
                    c.coordinates[0] = -3;
                    c.coordinates[1] = 4;
                    cases.push_back(c);
                }
            }
        }
    }
}

static void steps()
{
    for (int step = 1; step <= 8; step++) {
        for (int box : {1, 5, 8, 16}) {
            for (int begin : {0, -3, 11, 14}) {
                Case c;
                c.rank = 3;
                c.extents[0] = 20;
                c.extents[1] = 17;
                c.extents[2] = 9;
                c.box[0] = 8;
                c.box[1] = box;
                c.box[2] = 3;
                c.steps[0] = step;
                c.steps[1] = step;
                c.steps[2] = step % 3 + 1;
                c.coordinates[0] = 2;
                c.coordinates[1] = begin;
                c.coordinates[2] = -1;
                lay_out(c);
                cases.push_back(c);
            }
        }
    }
}

static void interleaved(Op op)
{
    for (int interleave = 1; interleave <= 2; interleave++) {
        for (int rank = 3; rank <= 5; rank++) {
            for (int elem : {0, 6, 7}) {
                for (int swizzle = 0; swizzle < 4; swizzle++) {
                    if (interleave == 2 && swizzle != 1) continue;
                    for (int where = 0; where < 5; where++) {
                        if ((swizzle > 1 || elem != 6) && where > 1) continue;
                        Case c;
                        c.op = op;
                        c.interleave = interleave;
                        c.swizzle = swizzle;
                        c.rank = rank;
                        c.elem = elem;
                        int slice = interleave * 16 / element_bytes(elem);
                        c.extents[0] = slice * 3 - (where == 4 ? 1 : 0);
                        c.box[0] = where == 3 ? 1 : where == 2 ? 3 : 2;
                        static const int EXTENTS[5] = {0, 5, 4, 3, 2};
                        uint64_t stride = interleave * 16 * (op == LOAD ? 7 : 6);
                        for (int i = 1; i < rank; i++) {
                            c.extents[i] = EXTENTS[i];
                            c.box[i] = 2;
                            c.strides[i - 1] = stride;
                            stride *= 6;
                        }
                        c.coordinates[0] = where == 2 ? 1 : 0;
                        c.coordinates[1] = where == 1 ? -1 : where == 2 ? 4 : 1;
                        c.coordinates[2] = where == 1 ? 3 : where == 4 ? -1 : 1;
                        cases.push_back(c);
                        if (where < 2 && elem == 6 && op == LOAD) {
                            c.box[0] = slice;
                            cases.push_back(c);
                            c.box[0] = 2 * slice;
                            cases.push_back(c);
                            c.coordinates[0] = slice;
                            cases.push_back(c);
                            c.coordinates[0] = -slice;
                            cases.push_back(c);
                            c.coordinates[0] = slice * 2;
                            c.steps[0] = 2;
                            cases.push_back(c);
                            c.coordinates[0] = 0;
                            c.steps[1] = 2;
                            c.box[1] = 4;
                            cases.push_back(c);
                        }
                    }
                }
            }
        }
    }
}

// An image of ours: C, W, H, D, N or the first and the last of them.
static Case image(int rank, int elem, int channels, int pixels)
{
    Case c;
    c.im2col = true;
    c.rank = rank;
    c.elem = elem;
    static const int EXTENTS[5] = {24, 7, 6, 5, 3};
    for (int i = 0; i + 1 < rank; i++) {
        c.extents[i] = EXTENTS[i];
    }
    c.extents[0] = elem >= 14 ? 256 : elem == 13 ? 64 : 24;
    c.extents[rank - 1] = 3;
    c.channels = channels;
    c.pixels = pixels;
    lay_out(c);
    return c;
}

static void columns()
{
    for (int rank = 3; rank <= 5; rank++) {
        for (int corner = 0; corner < 5; corner++) {
            for (int where = 0; where < 6; where++) {
                for (int offset = 0; offset < 3; offset++) {
                    Case c = image(rank, 7, 8, 20);
                    static const int LOWER[5][3] = {{0, 0, 0}, {-1, -1, -1}, {1, 2, 0}, {-2, 0, -1}, {0, -1, 1}};
                    static const int UPPER[5][3] = {{0, 0, 0}, {-1, -1, -1}, {1, 0, -2}, {-3, -2, 0}, {-2, 1, -1}};
                    for (int i = 0; i < rank - 2; i++) {
                        c.lower[i] = LOWER[corner][i];
                        c.upper[i] = UPPER[corner][i];
                        c.offsets[i] = offset == 0 ? 0 : offset == 1 ? 1 + i : (i == 0 ? 3 : 2);
                        switch (where) {
                        case 0: c.coordinates[1 + i] = c.lower[i]; break;
                        case 1: c.coordinates[1 + i] = c.lower[i] + 1; break;
                        case 2: c.coordinates[1 + i] = (int)c.extents[1 + i] - 1 + c.upper[i]; break;
                        case 3: c.coordinates[1 + i] = i == 0 ? 3 : 2; break;
                        case 4: c.coordinates[1 + i] = (int)c.extents[1 + i] + c.upper[i] + (i == 0 ? 1 : 0); break;
                        case 5: c.coordinates[1 + i] = c.lower[i] - 2; break;
                        }
                    }
                    c.coordinates[0] = where == 1 ? 20 : where == 3 ? -4 : 0;
                    c.coordinates[rank - 1] = where == 2 ? 2 : where == 3 ? 1 : where == 5 ? -1 : 0;
                    cases.push_back(c);
                }
            }
        }
        // Steps.
        for (int step = 2; step <= 4; step++) {
            for (int where = 0; where < 4; where++) {
                Case c = image(rank, 7, 4, 12);
                for (int i = 0; i < rank - 2; i++) {
                    c.steps[1 + i] = i == 0 ? step : (step + i) % 3 + 1;
                    c.lower[i] = -1;
                    c.upper[i] = where == 3 ? -2 : 0;
                    c.coordinates[1 + i] = where == 0 ? -1 : where == 1 ? 1 : 2;
                    c.offsets[i] = where == 2 ? 1 : 0;
                }
                if (where == 3) c.steps[rank - 1] = 2;
                cases.push_back(c);
            }
        }
        // Types, numbers of channels, fills, swizzles.
        for (int elem = 0; elem < 16; elem++) {
            for (int fill = 0; fill < 2; fill++) {
                if (fill && elem < 6) continue;
                int channels = elem >= 14 ? 128 : elem == 13 ? 32 : 16 / element_bytes(elem);
                Case c = image(rank, elem, channels, 9);
                c.fill = fill;
                c.lower[0] = -1;
                c.coordinates[1] = -1;
                c.coordinates[0] = elem >= 13 ? 0 : 12;
                cases.push_back(c);
            }
        }
        for (int swizzle = 1; swizzle < 7; swizzle++) {
            for (int channels : {3, 4, 8}) {
                Case c = image(rank, 7, channels, 13);
                c.swizzle = swizzle;
                c.coordinates[1] = 5;
                cases.push_back(c);
            }
        }
        for (int channels : {1, 2, 3, 5, 6, 24, 30}) {
            for (int pixels : {1, 2, 31}) {
                Case c = image(rank, 7, channels, pixels);
                c.coordinates[0] = 1;
                c.coordinates[1] = 2;
                cases.push_back(c);
            }
        }
        for (int interleave = 1; interleave <= 2; interleave++) {
            for (int where = 0; where < 4; where++) {
                Case c = image(rank, 6, where == 1 ? 16 : where == 2 ? 2 : 8, 10);
                c.interleave = interleave;
                c.swizzle = interleave == 2 ? 1 : 0;
                c.extents[0] = 48;
                uint64_t stride = interleave * 16 * 7;
                for (int i = 1; i < rank; i++) {
                    c.strides[i - 1] = stride;
                    stride *= 6;
                }
                c.coordinates[1] = where == 3 ? -1 : 4;
                c.lower[0] = where == 3 ? -1 : 0;
                cases.push_back(c);
            }
        }
    }
}

static void stores()
{
    for (int rank = 1; rank <= 5; rank++) {
        for (int elem = 0; elem < 13; elem++) {
            for (int where = 0; where < 3; where++) {
                Case c;
                c.op = STORE;
                c.rank = rank;
                c.elem = elem;
                c.pattern = elem == 10 || elem == 12 ? 3 : 0;
                int row = 16 / element_bytes(elem);
                c.extents[0] = row + 1;
                c.box[0] = row;
                for (int i = 1; i < rank; i++) {
                    c.extents[i] = 3;
                    c.box[i] = 2;
                }
                lay_out(c);
                for (int i = 0; i < rank; i++) {
                    c.coordinates[i] = where == 0 ? 0 : where == 1 ? (i % 2 ? 2 : -1) : (i % 2 ? -1 : 1);
                }
                cases.push_back(c);
            }
        }
    }
    for (int swizzle = 0; swizzle < 7; swizzle++) {
        for (int row : {16, 32, 48, 64, 128}) {
            static const int SPANS[7] = {256, 32, 64, 128, 128, 128, 128};
            if (row > SPANS[swizzle]) continue;
            for (unsigned place : {0u, 384u}) {
                Case c;
                c.op = STORE;
                c.swizzle = swizzle;
                c.extents[0] = 40;
                c.extents[1] = 12;
                c.box[0] = row / 4;
                c.box[1] = 9;
                c.place = place;
                c.coordinates[0] = 3;
                c.coordinates[1] = -1;
                lay_out(c);
                cases.push_back(c);
            }
        }
    }
    for (int step = 1; step <= 4; step++) {
        Case c;
        c.op = STORE;
        c.extents[0] = 9;
        c.extents[1] = 12;
        c.box[0] = 8;
        c.box[1] = 9;
        c.steps[1] = step;
        c.coordinates[0] = 3;
        c.coordinates[1] = -1;
        lay_out(c);
        cases.push_back(c);
    }
    for (int rank = 3; rank <= 5; rank++) {
        for (int where = 0; where < 5; where++) {
            Case c = image(rank, 7, where == 4 ? 3 : 4, 11);
            c.op = STORE;
            c.extents[0] = 6;
            lay_out(c);
            for (int i = 0; i < rank - 2; i++) {
                c.lower[i] = where == 1 ? -1 : where == 2 ? 1 : 0;
                c.upper[i] = where == 1 ? 0 : where == 2 ? -1 : 0;
                c.coordinates[1 + i] = c.lower[i] + (where == 3 ? 2 : 0);
                if (where == 3) c.steps[1 + i] = 2;
            }
            c.coordinates[0] = where == 2 ? 4 : 0;
            cases.push_back(c);
        }
    }
    interleaved(STORE);
}

static void reduction(int elem, int op, int pattern, int where)
{
    Case c;
    c.op = REDUCE;
    c.elem = elem;
    c.reduction = op;
    c.pattern = pattern;
    int row = 128 / element_bytes(elem);
    c.extents[0] = row + 1;
    c.extents[1] = 8;
    c.box[0] = row;
    c.box[1] = where ? 6 : 8;
    c.coordinates[0] = where ? -1 : 0;
    c.coordinates[1] = where ? 4 : 0;
    lay_out(c);
    cases.push_back(c);
}

static void reductions()
{
    // As the manual has them, by operation: add, min, max, inc, dec, and, or, xor.
    static const std::vector<int> TYPES[8] = {{2, 3, 4, 6, 7, 9, 10}, {2, 3, 4, 5, 6, 9}, {2, 3, 4, 5, 6, 9}, {2}, {2}, {2, 3, 4, 5}, {2, 3, 4, 5}, {2, 3, 4, 5}};
    for (int op = 0; op < 8; op++) {
        for (int elem : TYPES[op]) {
            int pattern = elem == 6 ? 1 : elem == 9 ? 2 : elem == 7 || elem == 10 ? 3 : 5;
            reduction(elem, op, pattern, 0);
            reduction(elem, op, pattern, 1);
        }
    }
    for (int rank = 3; rank <= 5; rank++) {
        Case c = image(rank, 2, 4, 11);
        c.op = REDUCE;
        c.pattern = 5;
        c.extents[0] = 6;
        lay_out(c);
        c.coordinates[0] = 4;
        cases.push_back(c);
    }
}

static void others()
{
    for (unsigned n : {0u, 1u, 16u, 1024u, 0x80000u}) {
        Case c;
        c.op = CALIBRATE;
        c.extents[0] = 16;
        c.extents[1] = 16;
        c.box[0] = 16;
        lay_out(c);
        c.bytes = n;
        cases.push_back(c);
    }
    for (int rank = 1; rank <= 5; rank++) {
        Case c;
        c.op = PREFETCH;
        c.rank = rank;
        for (int i = 0; i < rank; i++) c.extents[i] = c.box[i] = 4;
        c.coordinates[0] = -1;
        lay_out(c);
        cases.push_back(c);
    }
    for (unsigned mask : {1u, 2u, 3u}) {
        for (unsigned place : {0u, 256u}) {
            Case c;
            c.op = MULTICAST;
            c.extents[0] = 30;
            c.extents[1] = 16;
            c.box[0] = 8;
            c.box[1] = 5;
            c.swizzle = 1;
            c.coordinates[0] = 24;
            lay_out(c);
            c.mask = mask;
            c.place = place;
            cases.push_back(c);
        }
    }
    auto replacement = [](int field, int ordinal, unsigned long long value) {
        Case c;
        c.op = REPLACE;
        c.rank = 3;
        c.extents[0] = 64;
        c.extents[1] = 32;
        c.extents[2] = 8;
        c.box[0] = 16;
        c.box[1] = 8;
        c.box[2] = 4;
        c.steps[1] = 2;
        lay_out(c);
        c.field = field;
        c.ordinal = ordinal;
        c.value = value;
        cases.push_back(c);
    };
    for (unsigned long long v : {0ull, 16ull, 0x0123456789abcdf0ull}) replacement(0, 0, v);
    for (unsigned v = 0; v < 6; v++) replacement(1, 0, v);
    for (unsigned v = 0; v < 13; v++) replacement(2, 0, v);
    for (unsigned v = 0; v < 3; v++) replacement(3, 0, v);
    for (unsigned v = 0; v < 4; v++) replacement(4, 0, v);
    for (unsigned v = 0; v < 2; v++) replacement(5, 0, v);
    for (int o = 0; o < 5; o++) {
        for (unsigned v : {0u, 1u, 17u, 256u, 1000u}) replacement(6, o, v);
        for (unsigned v : {0u, 1u, 77u, 0x80000000u, 0xffffffffu}) replacement(7, o, v);
        for (unsigned v : {0u, 1u, 3u, 8u, 9u}) replacement(9, o, v);
        if (o < 4)
            for (unsigned long long v : {0ull, 16ull, 0x12340ull, 0x123456780ull, (1ull << 40) - 16, 1ull << 40, 24ull}) replacement(8, o, v);
    }
}

static void random_tiles(int count, Op op)
{
    for (int n = 0; n < count; n++) {
        Case c;
        c.op = op;
        c.rank = 1 + below(5);
        c.elem = below(13);
        c.promotion = below(4);
        c.fill = BITS[c.elem] && c.elem >= 6 && below(2);
        c.swizzle = below(7);
        static const int SPANS[7] = {256, 32, 64, 128, 128, 128, 128};
        int size = element_bytes(c.elem);
        int units = 1 + below(std::min(SPANS[c.swizzle], 256 * size) / 16);
        c.box[0] = units * 16 / size;
        c.extents[0] = 1 + below(op == LOAD ? 200 : 20);
        uint64_t left = op == LOAD ? 48 : 12;
        for (int i = 1; i < c.rank; i++) {
            c.extents[i] = 1 + below(op == LOAD ? 9 : 4);
            c.steps[i] = below(3) ? 1 : 1 + below(8);
            uint64_t taken = 1 + below(std::min<uint64_t>(left, 7));
            left = std::max<uint64_t>(1, left / taken);
            c.box[i] = std::min<uint64_t>(256, (taken - 1) * c.steps[i] + 1 + below(c.steps[i]));
        }
        for (int i = 0; i < c.rank; i++) {
            c.coordinates[i] = below(3) ? below(c.extents[i]) : (int)below(c.extents[i] + c.box[i]) - (int)c.box[i] / 2;
        }
        lay_out(c, below(3));
        c.address = 4096 + 16 * below(16);
        c.place = below(9) * 128;
        cases.push_back(c);
    }
}

static void random_columns(int count)
{
    for (int n = 0; n < count; n++) {
        int rank = 3 + below(3), elem = below(13), size = element_bytes(elem);
        Case c = image(rank, elem, 1 + below(24), 1 + below(40));
        c.fill = elem >= 6 && below(2);
        c.swizzle = c.channels * size <= 128 && below(2) ? 3 + below(4) : 0;
        c.extents[0] = 1 + below(40);
        for (int i = 0; i < rank - 2; i++) {
            c.extents[1 + i] = 1 + below(9);
            c.lower[i] = (int)below(6) - 3;
            c.upper[i] = (int)below(6) - 3;
            if ((int)c.extents[1 + i] + c.upper[i] - c.lower[i] <= 0) c.upper[i] = c.lower[i];
            c.steps[1 + i] = below(3) ? 1 : 1 + below(4);
            c.offsets[i] = below(2) ? 0 : below(4);
            int range = (int)c.extents[1 + i] + c.upper[i] - c.lower[i];
            c.coordinates[1 + i] = c.lower[i] + (int)below(range);
        }
        c.extents[rank - 1] = 1 + below(3);
        c.coordinates[rank - 1] = below(c.extents[rank - 1]);
        c.coordinates[0] = (int)below(c.extents[0] + 4) - 2;
        lay_out(c, below(3));
        c.place = below(9) * 128;
        cases.push_back(c);
    }
}

// What the driver takes: about a quarter has one thing or two that it may not.
static void encodings(int count)
{
    for (int n = 0; n < count; n++) {
        Case c;
        c.op = ENCODE;
        c.im2col = below(3) == 0;
        c.rank = c.im2col ? 3 + below(3) : 1 + below(5);
        c.elem = below(16);
        c.interleave = c.rank >= 3 && below(4) == 0 ? 1 + below(2) : 0;
        c.swizzle = c.interleave == 2 ? 1 : below(7);
        c.promotion = below(4);
        c.fill = c.elem >= 6 && c.elem < 13 && below(2);
        for (int i = 0; i < c.rank; i++) {
            c.extents[i] = below(8) ? 1 + below(300) : 1 + below(1ull << 31);
            c.box[i] = 1 + below(below(4) ? 16 : 256);
            c.steps[i] = below(3) ? 1 : 1 + below(8);
        }
        c.extents[0] = c.elem >= 14 ? 128 * (1 + below(4)) : c.elem == 13 ? 2 * (1 + below(99)) : c.extents[0];
        static const int SPANS[7] = {256, 32, 64, 128, 128, 128, 128};
        c.box[0] = c.elem >= 14 ? 128 : (1 + below(SPANS[c.swizzle] / 16)) * 128 / BITS[c.elem];
        c.channels = c.box[0];
        c.pixels = 1 + below(1024);
        for (int i = 0; i < 3 && i < c.rank - 2; i++) {
            c.lower[i] = (int)below(7) - 3;
            c.upper[i] = (int)below(7) - 3;
        }
        lay_out(c, below(4));
        for (int bad = below(4) ? 0 : 1 + below(2); bad; bad--) {
            int i = below(c.rank);
            switch (below(16)) {
            case 0: c.address += 1 + below(31); break;
            case 1: c.extents[i] = 0; break;
            case 2: c.extents[i] = (1ull << 31) + below(3); break;
            case 3: c.extents[i] = (1ull << 32) - 2 + below(4); break;
            case 4: c.strides[below(4)] += below(2) ? 8 : 16; break;
            case 5: c.strides[below(4)] = (1ull << 40) - 16 + 16 * below(2); break;
            case 6: c.box[i] = below(2) ? 0 : 256 + below(2); break;
            case 7: c.box[0] += below(2) ? 1 : 16; c.channels = c.box[0]; break;
            case 8: c.steps[i] = below(2) ? 0 : 8 + below(2); break;
            case 9: c.interleave = below(4); break;
            case 10: c.swizzle = below(9); break;
            case 11: c.fill = below(3); break;
            case 12: c.promotion = 3 + below(2); break;
            case 13: c.elem = below(18); break;
            case 14: c.strides[below(4)] = 0; break;
            case 15:
                if (below(2)) c.pixels = below(2) ? 0 : 1023 + below(3); else c.channels = below(2) ? 0 : 255 + below(3);
                if (below(2)) c.lower[below(3)] = below(2) ? 127 + (int)below(3) : -129 + (int)below(3);
                if (below(2)) c.upper[below(3)] = below(2) ? 15 + (int)below(3) : -17 + (int)below(3);
                break;
            }
        }
        cases.push_back(c);
    }
}

// What could end a context: each costs one.
static size_t first_risky;
static void risky()
{
    first_risky = cases.size();
    reduction(7, 1, 3, 0);     // min of f32
    reduction(8, 0, 4, 0);     // add of f64
    reduction(5, 0, 5, 0);     // add of s64
    reduction(12, 0, 3, 0);    // add of tf32 with flush
    reduction(0, 0, 5, 0);     // add of u8
    reduction(6, 5, 5, 0);     // and of f16
    for (int elem : {13, 14, 15}) {
        Case c;
        c.op = STORE;
        c.elem = elem;
        c.extents[0] = 256;
        c.extents[1] = 4;
        c.box[0] = elem == 13 ? 64 : 128;
        c.box[1] = 3;
        lay_out(c);
        cases.push_back(c);
    }
    Case c;
    c.extents[0] = 64;
    c.extents[1] = 8;
    c.box[0] = 8;
    c.box[1] = 4;
    lay_out(c);
    c.place = 16;    // not aligned
    cases.push_back(c);
    c.place = 64;
    cases.push_back(c);
    c.place = 0;
    c.rank = 3;      // fewer coordinates than the map has, below
    c.extents[2] = 3;
    lay_out(c);
    c.field = -2;
    cases.push_back(c);
    c.field = 0;
    c.swizzle = 3;
    c.place = 16;
    cases.push_back(c);
}

static unsigned expected_bytes(const Case& c)
{
    if (c.bytes || c.op == CALIBRATE) return c.bytes;
    uint64_t bits = c.elem >= 14 ? 8 : BITS[c.elem & 15];
    uint64_t n = 1;
    if (c.im2col) {
        n = (uint64_t)c.channels * c.pixels;
    } else {
        for (int i = 0; i < c.rank; i++) {
            uint64_t step = i == 0 && c.interleave == 0 ? 1 : c.steps[i];
            n *= (c.box[i] + step - 1) / step;
        }
    }
    return (unsigned)(n * bits / 8);
}

template <class T> static std::string list(const T* values, int n)
{
    std::string s;
    for (int i = 0; i < n; i++) {
        s += (i ? "," : "") + std::to_string(values[i]);
    }
    return s;
}

static std::string hex(const unsigned char* bytes, size_t n)
{
    static const char* const DIGITS = "0123456789abcdef";
    std::string s;
    s.reserve(2 * n);
    for (size_t i = 0; i < n; i++) {
        s += DIGITS[bytes[i] >> 4];
        s += DIGITS[bytes[i] & 15];
    }
    return s;
}

// Up to the last byte that somebody wrote; of much only the beginning, and FNV-1a of all.
static std::string content(const unsigned char* bytes, size_t n, const unsigned char* before)
{
    while (n && bytes[n - 1] == (before ? before[n - 1] : UNTOUCHED)) n--;
    uint64_t digest = 0xcbf29ce484222325ull;
    for (size_t i = 0; i < n; i++) digest = (digest ^ bytes[i]) * 0x100000001b3ull;
    char head[64];
    snprintf(head, sizeof head, "length=%zu fnv=%016llx data=", n, (unsigned long long)digest);
    return head + hex(bytes, n > 4096 ? 256 : n);
}

typedef CUresult (*Tiled)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*, const cuuint64_t*, const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
typedef CUresult (*Columns)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*, const cuuint64_t*, const int*, const int*, cuuint32_t, cuuint32_t, const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

static void* entry(const char* name)
{
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 12050
    if (cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found) != cudaSuccess) return nullptr;
#else
    if (cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &found) != cudaSuccess) return nullptr;
#endif
    return function;
}

static double now()
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

struct Progress {
    volatile size_t next;
    volatile double when;
};

static std::vector<uint32_t> words(int pattern, uint64_t seed, size_t bytes)
{
    std::vector<uint32_t> all(bytes / 4);
    for (size_t i = 0; i < all.size(); i++) all[i] = word(pattern, seed, i);
    return all;
}

// Moves the box to where it begins at a multiple of 16 bytes of the first dimension: an H100 takes no other for an instruction, and of
// such faults a few are enough.
static void align(Case& c)
{
    int unit = std::max(128 / BITS[c.elem], 1), over = ((c.coordinates[0] % unit) + unit) % unit;
    if (c.interleave == 0) c.coordinates[0] -= over;
}

// Runs cases until one faults. Those of the driver's memory are the same for all.
static int run_cases(Progress* progress, size_t parts)
{
#define TRY(CALL)                                                                                     \
    do {                                                                                              \
        cudaError_t e = (CALL);                                                                       \
        if (e != cudaSuccess) {                                                                       \
            printf("error %s: %s\n", #CALL, cudaGetErrorName(e));                                     \
            fflush(stdout);                                                                           \
            return 2;                                                                                 \
        }                                                                                             \
    } while (0)
    TRY(cudaSetDevice(0));
    TRY(cudaFree(nullptr));
    Tiled tiled = (Tiled)entry("cuTensorMapEncodeTiled");
    Columns columns = (Columns)entry("cuTensorMapEncodeIm2col");
    if (!tiled || !columns) {
        printf("error no functions of the driver\n");
        return 2;
    }
    unsigned char *tensor, *source, *dump;
    Answer* answers;
    TRY(cudaMalloc(&tensor, GLOBAL));
    TRY(cudaMalloc(&source, SHARED));
    TRY(cudaMalloc(&dump, 2 * SHARED));
    TRY(cudaMalloc(&answers, 2 * sizeof(Answer)));
    unsigned char* pristine[6] = {};
    for (int p = 0; p < 6; p++) {
        size_t bytes = p == 0 ? GLOBAL : 1 << 20;
        auto all = words(p, 1, bytes);
        TRY(cudaMalloc(&pristine[p], bytes));
        TRY(cudaMemcpy(pristine[p], all.data(), bytes, cudaMemcpyHostToDevice));
    }
    std::vector<uint32_t> sources[6];
    for (int p = 0; p < 6; p++) sources[p] = words(p, 2, SHARED);
    TRY(cudaFuncSetAttribute(work, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED + 1024));
    if (progress->next == 0) {
        cudaDeviceProp properties;
        int driver = 0, runtime = 0;
        TRY(cudaGetDeviceProperties(&properties, 0));
        cudaDriverGetVersion(&driver);
        cudaRuntimeGetVersion(&runtime);
        printf("gpu=%s sm=%d%d driver=%d runtime=%d cases=%zu tensor=%p\n", properties.name, properties.major, properties.minor, driver, runtime, cases.size(), (void*)tensor);
    }
    std::vector<unsigned char> got(std::max(WRITTEN, 2 * SHARED));
    int contents = -1;
    while (progress->next < cases.size()) {
        size_t n = progress->next;
        Case c = cases[n];
        progress->next = n + parts;
        if (n % 64 != 0) align(c);
        progress->when = now();
        std::string line = "case=" + std::to_string(n) + " op=" + OPS[c.op] + " mode=" + (c.im2col ? "im2col" : "tiled") + " rank=" + std::to_string(c.rank) + " elem=" + std::to_string(c.elem) + " address=" + std::to_string(c.address) + " pattern=" + std::to_string(c.pattern) + " extents=" + list(c.extents, c.rank) + " strides=" + list(c.strides, c.rank - 1);
        if (c.im2col) {
            line += " lower=" + list(c.lower, c.rank - 2) + " upper=" + list(c.upper, c.rank - 2) + " channels=" + std::to_string(c.channels) + " pixels=" + std::to_string(c.pixels) + " offsets=" + list(c.offsets, c.rank - 2);
        } else {
            line += " box=" + list(c.box, c.rank);
        }
        line += " steps=" + list(c.steps, c.rank) + " interleave=" + std::to_string(c.interleave) + " swizzle=" + std::to_string(c.swizzle) + " promotion=" + std::to_string(c.promotion) + " fill=" + std::to_string(c.fill);
        if (c.op != ENCODE && c.op != REPLACE && c.op != CALIBRATE) line += " coordinates=" + list(c.coordinates, c.rank) + " place=" + std::to_string(c.place);
        if (c.op == REDUCE) line += std::string(" reduction=") + REDUCTIONS[c.reduction];
        if (c.op == MULTICAST) line += " mask=" + std::to_string(c.mask);
        if (c.op == REPLACE) line += std::string(" field=") + FIELDS[c.field] + " ordinal=" + std::to_string(c.ordinal) + " value=" + std::to_string(c.value);
        if (c.field == -2) line += " fewer=1";
        // The driver may read further than it needs to.
        alignas(128) CUtensorMap map;
        memset(&map, 0, sizeof map);
        uint64_t extents[8] = {}, strides[8] = {};
        uint32_t box[8] = {}, steps[8] = {};
        int lower[8] = {}, upper[8] = {};
        memcpy(extents, c.extents, sizeof c.extents);
        memcpy(strides, c.strides, sizeof c.strides);
        memcpy(box, c.box, sizeof c.box);
        memcpy(steps, c.steps, sizeof c.steps);
        memcpy(lower, c.lower, sizeof c.lower);
        memcpy(upper, c.upper, sizeof c.upper);
        auto elem = (CUtensorMapDataType)c.elem;
        auto interleave = (CUtensorMapInterleave)c.interleave;
        auto swizzle = (CUtensorMapSwizzle)c.swizzle;
        auto promotion = (CUtensorMapL2promotion)c.promotion;
        auto fill = (CUtensorMapFloatOOBfill)c.fill;
        CUresult encoded = c.im2col ? columns(&map, elem, c.rank, tensor + c.address, extents, strides, lower, upper, c.channels, c.pixels, steps, interleave, swizzle, promotion, fill)
                                    : tiled(&map, elem, c.rank, tensor + c.address, extents, strides, box, steps, interleave, swizzle, promotion, fill);
        line += " encoded=" + std::to_string((int)encoded);
        if (encoded == CUDA_SUCCESS) line += " map=" + hex((const unsigned char*)&map, 128);
        if (encoded != CUDA_SUCCESS || c.op == ENCODE) {
            printf("%s\n", line.c_str());
            continue;
        }
        Job job = {};
        job.op = c.op;
        job.rank = c.field == -2 ? 2 : c.rank;
        job.im2col = c.im2col;
        job.reduction = c.reduction;
        memcpy(job.coordinates, c.coordinates, sizeof job.coordinates);
        memcpy(job.offsets, c.offsets, sizeof job.offsets);
        job.place = c.place;
        job.bytes = expected_bytes(c);
        job.mask = c.mask;
        job.field = c.field;
        job.ordinal = c.ordinal;
        job.value = c.value;
        bool writes = c.op == STORE || c.op == REDUCE;
        cudaError_t e = cudaSuccess;
        auto step = [&](cudaError_t status) { if (e == cudaSuccess) e = status; };
        if (c.op == STORE) {
            step(cudaMemset(tensor, UNTOUCHED, WRITTEN));
            contents = -1;
        } else if (contents != c.pattern || c.op == REDUCE) {
            step(cudaMemcpy(tensor, pristine[c.pattern], c.pattern == 0 ? GLOBAL : 1 << 20, cudaMemcpyDeviceToDevice));
            contents = c.op == REDUCE ? -1 : c.pattern;
        }
        if (writes) step(cudaMemcpy(source, sources[c.pattern].data(), SHARED, cudaMemcpyHostToDevice));
        step(cudaMemset(answers, 0, 2 * sizeof(Answer)));
        step(cudaMemset(dump, 0, 2 * SHARED));
        cudaLaunchConfig_t config = {};
        unsigned blocks = c.op == MULTICAST ? 2 : 1;
        config.gridDim = dim3(blocks);
        config.blockDim = dim3(128);
        config.dynamicSmemBytes = SHARED + 1024;
        cudaLaunchAttribute attribute;
        attribute.id = cudaLaunchAttributeClusterDimension;
        attribute.val.clusterDim.x = blocks;
        attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
        config.attrs = &attribute;
        config.numAttrs = 1;
        if (e == cudaSuccess) step(cudaLaunchKernelEx(&config, work, map, job, (const unsigned char*)source, dump, answers));
        step(cudaDeviceSynchronize());
        Answer answer[2] = {};
        step(cudaMemcpy(answer, answers, sizeof answer, cudaMemcpyDeviceToHost));
        size_t length = writes ? WRITTEN : c.op == REPLACE ? 128 : blocks * SHARED;
        step(cudaMemcpy(got.data(), writes ? tensor : dump, length, cudaMemcpyDeviceToHost));
        line += std::string(" status=") + cudaGetErrorName(e);
        if (e != cudaSuccess) {
            printf("%s\n", line.c_str());
            fflush(stdout);
            return 3;
        }
        for (unsigned b = 0; b < blocks; b++) {
            char part[128];
            if (c.op == LOAD || c.op == MULTICAST || c.op == CALIBRATE) {
                snprintf(part, sizeof part, " done=%u expected=%u before=%016llx after=%016llx", answer[b].done, job.bytes, answer[b].before, answer[b].after);
                line += part;
            }
            if (c.op == LOAD || c.op == MULTICAST) {
                const unsigned char* part = got.data() + b * SHARED;
                bool early = false;
                for (unsigned i = 0; i < c.place; i++) early |= part[i] != UNTOUCHED;
                line += std::string(" early=") + (early ? "1 " : "0 ") + content(part + c.place, SHARED - c.place, nullptr);
            }
        }
        if (c.op == REPLACE) line += " data=" + hex(got.data(), 128);
        if (writes) {
            std::vector<uint32_t> old;
            const unsigned char* before = nullptr;
            if (c.op == REDUCE) {
                old = words(c.pattern, 1, WRITTEN);
                before = (const unsigned char*)old.data();
            }
            bool early = false;
            for (unsigned i = 0; i < c.address; i++) early |= got[i] != (before ? before[i] : UNTOUCHED);
            line += std::string(" early=") + (early ? "1 " : "0 ") + content(got.data() + c.address, WRITTEN - c.address, before ? before + c.address : nullptr);
        }
        printf("%s\n", line.c_str());
    }
    fflush(stdout);
    return 0;
}

int main(int count, char** arguments)
{
    size_t part = count > 2 ? atoi(arguments[1]) : 0, parts = count > 2 ? atoi(arguments[2]) : 1;
    double begin = now();
    setvbuf(stdout, nullptr, _IOLBF, 1 << 16);    // a process that is killed leaves whole lines
    others();
    all_types_and_ranks();
    swizzles();
    fills_and_values();
    steps();
    interleaved(LOAD);
    columns();
    stores();
    reductions();
    random_tiles(300, LOAD);
    random_tiles(80, STORE);
    random_columns(250);
    encodings(700);
    risky();
    auto* progress = (Progress*)mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    progress->next = part;
    while (progress->next < cases.size() && now() - begin < LONGEST) {
        if (progress->next >= first_risky && now() - begin > LONGEST / 2) {
            printf("left out from case=%zu on\n", (size_t)progress->next);
            break;
        }
        fflush(stdout);
        progress->when = now() + 20;
        pid_t child = fork();
        if (child == 0) {
            int status = run_cases(progress, parts);
            fflush(stdout);
            _exit(status);
        }
        int status = 0;
        while (waitpid(child, &status, WNOHANG) == 0) {
            usleep(2000);
            if (now() - progress->when > 5) {
                kill(child, SIGKILL);
                waitpid(child, &status, 0);
                printf("case=%zu hangs\n", (size_t)progress->next - parts);
                break;
            }
        }
        if (WIFEXITED(status) && WEXITSTATUS(status) == 2) break;
    }
    printf("end seconds=%.1f\n", now() - begin);
    return 0;
}
