// One field of a structure is not set; all fields go to the output.
//
// RUN: --block 32 --arg u32[96]
// FIND: uninitialized-output
struct Point {
    unsigned x, y, z;
};

extern "C" __global__ void kernel(Point* out) {
    __shared__ Point points[32];
    unsigned t = threadIdx.x;
    points[t].x = t;
    points[t].y = t * 2;
    points[t].z = t * 3; // FIX
    __syncthreads();
    out[t] = points[31 - t]; // SITE
}
