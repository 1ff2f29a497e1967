// Neighbours are averaged in place: they are read after others have written.
//
// RUN: --block 64 --arg f32[64]=1 --arg f32[64]
// FIND: race-write-read
extern "C" __global__ void kernel(const float* in, float* out) {
    __shared__ float line[66];
    unsigned t = threadIdx.x;
    line[t + 1] = in[t];
    if (t < 2) line[t * 65] = 0;
    __syncthreads();
    float mean = (line[t] + line[t + 1] + line[t + 2]) / 3; // SITE
    __syncthreads(); // FIX
    line[t + 1] = mean; // SITE
    __syncthreads();
    out[t] = line[64 - t];
}
