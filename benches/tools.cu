// Kernels whose accesses the tools cannot note row by row (`cargo bench -p ptxvm --bench tools`). What is committed beside was made by
// nvcc 13.5 with the headers of CUB: nvcc -ptx -std=c++17 -arch=compute_80 -o tools.ptx tools.cu

#include <cub/block/block_load.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
#include <cuda_pipeline.h>

template <cub::BlockScanAlgorithm A, cub::BlockLoadAlgorithm L, cub::BlockStoreAlgorithm T>
__device__ void scan(const int *in, int *out) {
  using Scan = cub::BlockScan<int, 256, A>;
  using Load = cub::BlockLoad<int, 256, 4, L>;
  using Store = cub::BlockStore<int, 256, 4, T>;
  __shared__ union {
    typename Scan::TempStorage scan;
    typename Load::TempStorage load;
    typename Store::TempStorage store;
  } s;
  int v[4];
  Load(s.load).Load(in + blockIdx.x * 1024, v);
  __syncthreads();
  Scan(s.scan).ExclusiveSum(v, v);
  __syncthreads();
  Store(s.store).Store(out + blockIdx.x * 1024, v);
}

// Each thread loads four elements one after the other.
extern "C" __global__ void __launch_bounds__(256) block_scan(const int *in, int *out) {
  scan<cub::BLOCK_SCAN_RAKING, cub::BLOCK_LOAD_DIRECT, cub::BLOCK_STORE_DIRECT>(in, out);
}

// Each warp brings its elements into order in shared memory, with __syncwarp between.
extern "C" __global__ void __launch_bounds__(256) block_scan_warps(const int *in, int *out) {
  scan<cub::BLOCK_SCAN_WARP_SCANS, cub::BLOCK_LOAD_WARP_TRANSPOSE, cub::BLOCK_STORE_WARP_TRANSPOSE>(in, out);
}

extern "C" __global__ void __launch_bounds__(128) block_radix_sort(const unsigned *in, unsigned *out) {
  using Sort = cub::BlockRadixSort<unsigned, 128, 4>;
  __shared__ Sort::TempStorage s;
  unsigned v[4];
  cub::LoadDirectStriped<128>(threadIdx.x, in + blockIdx.x * 512, v);
  Sort(s).SortBlockedToStriped(v);
  cub::StoreDirectStriped<128>(threadIdx.x, out + blockIdx.x * 512, v);
}

// A ring of four tiles, which cp.async fills while another one is read.
extern "C" __global__ void copy_ring(const float4 *in, float4 *out, int tiles) {
  __shared__ float4 ring[4][128];
  in += blockIdx.x * tiles * 128;
  int t = threadIdx.x;
  for (int i = 0; i < 3; i++) {
    __pipeline_memcpy_async(&ring[i][t], in + i * 128 + t, 16);
    __pipeline_commit();
  }
  float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 1
  for (int i = 0; i < tiles; i++) {
    __pipeline_wait_prior(2);
    __syncthreads();
    float4 a = ring[i & 3][t], b = ring[i & 3][t ^ 37];
    sum.x += a.x * b.w;
    sum.y += a.y * b.z;
    sum.z += a.z * b.y;
    sum.w += a.w * b.x;
    int next = i + 3;
    if (next < tiles) __pipeline_memcpy_async(&ring[next & 3][t], in + next * 128 + t, 16);
    __pipeline_commit();
  }
  out[blockIdx.x * 128 + t] = sum;
}

extern "C" __global__ void scattered(int *p, int stride) {
  p[(size_t)(blockIdx.x * blockDim.x + threadIdx.x) * stride] = 1;
}

// Each thread merges its part of two sorted arrays.
extern "C" __global__ void merge(const int *a, const int *b, int *out, int n, int part) {
  int first = (blockIdx.x * blockDim.x + threadIdx.x) * part;
  if (first >= 2 * n) return;
  int low = max(0, first - n), high = min(first, n);
#pragma unroll 1
  while (low < high) {
    int mid = (low + high) / 2;
    if (a[mid] <= b[first - 1 - mid]) low = mid + 1; else high = mid;
  }
  int i = low, j = first - low;
#pragma unroll 1
  for (int k = first; k < min(first + part, 2 * n); k++) {
    bool left = j >= n || (i < n && a[i] <= b[j]);
    out[k] = left ? a[i++] : b[j++];
  }
}
