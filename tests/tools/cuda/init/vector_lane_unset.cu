// The fourth number of a vector is not set before the vector is stored.
//
// RUN: --block 32 --arg f32[128]
// FIND: uninitialized-output
extern "C" __global__ void kernel(float4* out) {
    __shared__ float4 tile[32];
    unsigned t = threadIdx.x;
    tile[t].x = t;
    tile[t].y = t + 1;
    tile[t].z = t + 2;
    tile[t].w = 1; // FIX
    __syncthreads();
    out[t] = tile[t ^ 1]; // SITE
}
