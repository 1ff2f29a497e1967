// Scans whose blocks learn of each other as those of CUB's device-wide algorithms do, by a decoupled look-back: a block publishes its sum
// beside a flag, and reads those before it until it has its prefix. What is committed beside was made by nvcc 13.5 with the headers of
// CUB: nvcc -ptx -std=c++17 -arch=compute_80 -o lookback.ptx lookback.cu

#include <cub/agent/single_pass_scan_operators.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/thread/thread_operators.cuh>

constexpr int THREADS = 128;

// As many bytes as no flag fits beside in one word.
struct wide {
  long long a, b;
};

struct add {
  template <class T> __device__ T operator()(T x, T y) const { return x + y; }
  __device__ wide operator()(wide x, wide y) const { return {x.a + y.a, x.b + y.b}; }
};

template <class State> __device__ State state_at(void *memory, int tiles) {
  size_t bytes = 0;
  State state;
  State::AllocationSize(tiles, bytes);
  state.Init(tiles, memory, bytes);
  return state;
}

template <class State, class T, class Op> __device__ T scan(State state, T value, Op op) {
  using Scan = cub::BlockScan<T, THREADS>;
  using Prefix = cub::TilePrefixCallbackOp<T, Op, State>;
  __shared__ typename Scan::TempStorage of_scan;
  __shared__ typename Prefix::TempStorage of_prefix;
  int tile = blockIdx.x;
  if (tile > 0) {
    Prefix prefix(state, of_prefix, op, tile);
    Scan(of_scan).InclusiveScan(value, value, op, prefix);
  } else {
    T sum;
    Scan(of_scan).InclusiveScan(value, value, op, sum);
    if (threadIdx.x == 0) state.SetInclusive(0, sum);
  }
  return value;
}

// Sums of all elements up to each. `memory` is for the look-back.
#define SUMS(NAME, T)                                                                                         \
  extern "C" __global__ void NAME##_init(void *memory, int tiles) {                                           \
    state_at<cub::ScanTileState<T>>(memory, tiles).InitializeStatus(tiles);                                   \
  }                                                                                                           \
  extern "C" __global__ void __launch_bounds__(THREADS) NAME(const T *in, T *out, void *memory, int tiles) {  \
    int i = blockIdx.x * THREADS + threadIdx.x;                                                               \
    out[i] = scan(state_at<cub::ScanTileState<T>>(memory, tiles), in[i], add());                              \
  }
SUMS(sums_u8, unsigned char)
SUMS(sums_u16, unsigned short)
SUMS(sums_u32, unsigned)
SUMS(sums_u64, unsigned long long)
SUMS(sums_wide, wide)

// Sums within runs of equal keys; a pair is the number of runs that begin up to here, and the sum of the last one.
#define BY_KEY(NAME, T)                                                                                      \
  extern "C" __global__ void NAME##_init(void *memory, int tiles) {                                          \
    state_at<cub::ReduceByKeyScanTileState<T, int>>(memory, tiles).InitializeStatus(tiles);                  \
  }                                                                                                          \
  extern "C" __global__ void __launch_bounds__(THREADS)                                                      \
      NAME(const int *keys, const T *in, T *out, void *memory, int tiles) {                                  \
    int i = blockIdx.x * THREADS + threadIdx.x;                                                              \
    cub::KeyValuePair<int, T> pair{i == 0 || keys[i - 1] != keys[i], in[i]};                                 \
    cub::ReduceBySegmentOp<add> op{add()};                                                                   \
    out[i] = scan(state_at<cub::ReduceByKeyScanTileState<T, int>>(memory, tiles), pair, op).value;           \
  }
BY_KEY(by_key_u32, unsigned)
BY_KEY(by_key_u64, unsigned long long)
