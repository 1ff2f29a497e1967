// What graph codes do, each in one kernel: by thread, by warp or by block for each vertex; and with BUG one mistake in each place where it can
// be made. The patterns and the mistakes are those that the Indigo suite describes (Liu, Azami, Walters, Burtscher, ISPASS 2022);
// the code is ours. nvcc -ptx -arch=compute_80 -DBUG=n kernels.cu
//
// BUG: 0 none, 1 no atomic operation, 2 a plain look before an atomic operation, 3 one array read and written, 4 a barrier left out,
// 5 one vertex too many.

#ifndef BUG
#define BUG 0
#endif

#define KERNEL(name)                                                                                                \
    extern "C" __global__ void name(const int *__restrict__ first, const int *__restrict__ neighbour, const int vertices, \
                                    int *result, int *value, int *list, int *length)
#define IS_VERTEX(v) (BUG == 5 ? (v) <= vertices : (v) < vertices)
#define NEIGHBOURS(i, v, start, step) for (int i = first[v] + (start); i < first[(v) + 1]; i += (step))

__device__ int weight(int vertex) { return vertex * 7 % 13; }

__device__ void raise(int *place, int x) {
#if BUG == 1
    if (*place < x) *place = x;
#elif BUG == 2
    if (*place < x) atomicMax(place, x);
#else
    atomicMax(place, x);
#endif
}

__device__ int next(int *counter) {
#if BUG == 1
    return (*counter)++;
#else
    return atomicAdd(counter, 1);
#endif
}

__device__ void barrier_or_bug() {
#if BUG != 4
    __syncthreads();
#endif
}

__device__ int most_of_warp(int x) {
    for (int step = 16; step; step /= 2) x = max(x, __shfl_xor_sync(~0, x, step));
    return x;
}

__device__ int thread() { return threadIdx.x + blockIdx.x * blockDim.x; }

// Vertices with a heavy neighbour are counted.
KERNEL(vertices_by_thread) {
    const int v = thread();
    if (!IS_VERTEX(v)) return;
    int most = 0;
    NEIGHBOURS(i, v, 0, 1) most = max(most, weight(neighbour[i]));
    if (most > 5) next(result);
}

KERNEL(vertices_by_few_threads) {
    for (int v = thread(); IS_VERTEX(v); v += gridDim.x * blockDim.x) {
        int most = 0;
        NEIGHBOURS(i, v, 0, 1) most = max(most, weight(neighbour[i]));
        if (most > 5) next(result);
    }
}

KERNEL(vertices_by_warp) {
    const int v = thread() / 32, lane = threadIdx.x % 32;
    if (!IS_VERTEX(v)) return;
    int most = 0;
    NEIGHBOURS(i, v, lane, 32) most = max(most, weight(neighbour[i]));
    most = most_of_warp(most);
    if (lane == 0 && most > 5) next(result);
}

__device__ int most_of_block(int x, int *shared) {
    x = most_of_warp(x);
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
    barrier_or_bug();
    return threadIdx.x < 32 ? most_of_warp(threadIdx.x < blockDim.x / 32 ? shared[threadIdx.x] : 0) : 0;
}

KERNEL(vertices_by_block) {
    __shared__ int shared[32];
    const int v = blockIdx.x;
    if (!IS_VERTEX(v)) return;
    int most = 0;
    NEIGHBOURS(i, v, threadIdx.x, blockDim.x) most = max(most, weight(neighbour[i]));
    most = most_of_block(most, shared);
    if (threadIdx.x == 0 && most > 5) next(result);
}

KERNEL(vertices_by_few_blocks) {
    __shared__ int shared[32];
    for (int v = blockIdx.x; IS_VERTEX(v); v += gridDim.x) {
        int most = 0;
        NEIGHBOURS(i, v, threadIdx.x, blockDim.x) most = max(most, weight(neighbour[i]));
        most = most_of_block(most, shared);
        if (threadIdx.x == 0 && most > 5) next(result);
        barrier_or_bug();
    }
}

// Edges to later vertices are counted.
KERNEL(edges_by_thread) {
    const int v = thread();
    if (!IS_VERTEX(v)) return;
    NEIGHBOURS(i, v, 0, 1) if (v < neighbour[i]) next(result);
}

KERNEL(edges_by_warp) {
    const int v = thread() / 32;
    if (!IS_VERTEX(v)) return;
    NEIGHBOURS(i, v, threadIdx.x % 32, 32) if (v < neighbour[i]) next(result);
}

KERNEL(edges_by_block) {
    const int v = blockIdx.x;
    if (!IS_VERTEX(v)) return;
    NEIGHBOURS(i, v, threadIdx.x, blockDim.x) if (v < neighbour[i]) next(result);
}

// Each vertex gives its value to its neighbours.
KERNEL(push_by_thread) {
    const int v = thread();
    if (!IS_VERTEX(v)) return;
    NEIGHBOURS(i, v, 0, 1) raise(&result[neighbour[i]], value[v]);
}

KERNEL(push_by_warp) {
    const int v = thread() / 32;
    if (!IS_VERTEX(v)) return;
    NEIGHBOURS(i, v, threadIdx.x % 32, 32) raise(&result[neighbour[i]], value[v]);
}

KERNEL(push_by_block) {
    const int v = blockIdx.x;
    if (!IS_VERTEX(v)) return;
    NEIGHBOURS(i, v, threadIdx.x, blockDim.x) raise(&result[neighbour[i]], value[v]);
}

// Each vertex takes the largest value of its neighbours.
#if BUG == 3
#define SOURCE result
#else
#define SOURCE value
#endif

KERNEL(pull_by_thread) {
    const int v = thread();
    if (!IS_VERTEX(v)) return;
    int most = 0;
    NEIGHBOURS(i, v, 0, 1) most = max(most, SOURCE[neighbour[i]]);
    result[v] = most + 1;
}

KERNEL(pull_by_warp) {
    const int v = thread() / 32, lane = threadIdx.x % 32;
    if (!IS_VERTEX(v)) return;
    int most = 0;
    NEIGHBOURS(i, v, lane, 32) most = max(most, SOURCE[neighbour[i]]);
    most = most_of_warp(most);
    if (lane == 0) result[v] = most + 1;
}

KERNEL(pull_by_block) {
    __shared__ int most;
    const int v = blockIdx.x;
    if (!IS_VERTEX(v)) return;
    if (threadIdx.x == 0) most = 0;
    barrier_or_bug();
    NEIGHBOURS(i, v, threadIdx.x, blockDim.x) atomicMax(&most, SOURCE[neighbour[i]]);
    __syncthreads();
    if (threadIdx.x == 0) result[v] = most + 1;
}

// Vertices with a neighbour of some value are listed.
KERNEL(list_by_thread) {
    const int v = thread();
    if (!IS_VERTEX(v)) return;
    bool is_listed = false;
    NEIGHBOURS(i, v, 0, 1) is_listed |= value[neighbour[i]] > 3;
    if (is_listed) list[next(length)] = v;
}

KERNEL(list_by_warp) {
    const int v = thread() / 32, lane = threadIdx.x % 32;
    if (!IS_VERTEX(v)) return;
    bool is_listed = false;
    NEIGHBOURS(i, v, lane, 32) is_listed |= value[neighbour[i]] > 3;
    if (__any_sync(~0, is_listed) && lane == 0) list[next(length)] = v;
}

// Connected vertices get one representative; ways to it become shorter as they are walked.
__device__ int representative(int *parents, int v) {
#if BUG == 3
    int *parent = parents;
#else
    volatile int *parent = parents;
#endif
    int at = parent[v];
    if (at != v) {
        int before = v, above;
        while (at > (above = parent[at])) {
            parent[before] = above;
            before = at;
            at = above;
        }
    }
    return at;
}

__device__ void join(int *parents, int a, int b) {
#if BUG == 1
    if (a != b) parents[max(a, b)] = min(a, b);
#else
    while (a != b) {
        const int upper = max(a, b), lower = min(a, b);
        const int seen = atomicCAS(&parents[upper], upper, lower);
        if (seen == upper) return;
        a = seen;
        b = lower;
    }
#endif
}

KERNEL(components_by_thread) {
    const int v = thread();
    if (!IS_VERTEX(v)) return;
    NEIGHBOURS(i, v, 0, 1) {
        const int n = neighbour[i];
        if (v > n) join(value, representative(value, v), representative(value, n));
    }
}
