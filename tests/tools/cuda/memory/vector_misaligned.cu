// A vector of four is loaded from an address that is no multiple of its size.
//
// RUN: --block 8 --arg f32[40]=1 --arg f32[32]
// FIND: misaligned
extern "C" __global__ void kernel(const float* in, float4* out) {
    unsigned t = threadIdx.x;
    out[t] = *(const float4*)(in + t * 4 + 1); // BUG SITE
    out[t] = *(const float4*)(in + t * 4 + 4); // FIX
}
