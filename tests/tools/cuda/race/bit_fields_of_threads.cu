// Two fields in one byte belong to two threads; each is a read and a write of the whole byte. Bytes of their own are apart.
//
// RUN: --block 64 --arg u32[2]
// FIND: race-write-read race-write-write
struct Fields {
    unsigned char low : 4, high : 4; // BUG
    unsigned char low, high; // FIX
};

extern "C" __global__ void kernel(unsigned* out) {
    __shared__ Fields fields;
    unsigned t = threadIdx.x;
    if (t == 0) {
        fields.low = 0;
        fields.high = 0;
    }
    __syncthreads();
    if (t == 0) fields.low = 5; // SITE
    if (t == 32) fields.high = 9; // SITE
    __syncthreads();
    if (t == 0) out[0] = fields.low, out[1] = fields.high;
}
