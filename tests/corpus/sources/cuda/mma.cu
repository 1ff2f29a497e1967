// nvcc: sm_80 sm_90 sm_100

// Products of matrices by one warp, in each type: one instruction each.
extern "C" __global__ void mma(const unsigned *a, const unsigned *b, float *floats, int *ints, double *doubles)
{
    int i = threadIdx.x;
    unsigned x[4] = {a[i], a[32 + i], a[64 + i], a[96 + i]}, y[2] = {b[i], b[32 + i]};
    float c[4] = {}, d[4] = {}, e[4] = {};
    int s[4] = {};
    double f[2] = {};
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(e[0]), "+f"(e[1]), "+f"(e[2]), "+f"(e[3]) : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    asm volatile("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+r"(s[0]), "+r"(s[1]), "+r"(s[2]), "+r"(s[3]) : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    double u = (int)x[0], v = (int)y[0];
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};" : "+d"(f[0]), "+d"(f[1]) : "d"(u), "d"(v));
    for (int k = 0; k < 4; k++) {
        floats[4 * i + k] = c[k] + d[k] + e[k];
        ints[4 * i + k] = s[k];
    }
    doubles[2 * i] = f[0];
    doubles[2 * i + 1] = f[1];
}

// Tiles of 8 x 8 halves, read from shared memory by rows and written transposed.
extern "C" __global__ void transposed(const uint4 *in, unsigned *out)
{
    __shared__ uint4 rows[32];
    rows[threadIdx.x] = in[threadIdx.x];
    __syncwarp();
    unsigned address = __cvta_generic_to_shared(&rows[threadIdx.x]), r[4];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address));
    for (int k = 0; k < 4; k++) out[32 * k + threadIdx.x] = r[k];
}
