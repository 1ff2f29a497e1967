// The functions of the table of benches/kernels.rs, with its sizes and blocks, as far as their PTX has them. pocl.c runs them.

#pragma OPENCL FP_CONTRACT OFF

kernel void saxpy(uint n, float a, global const float *x, global float *y) {
    uint i = get_global_id(0);
    if (i < n) y[i] = fma(a, x[i], y[i]);
}

// As the native loop does it: PoCL has no halves on this host.
short order(ushort h) { return h ^ ((ushort)((short)h >> 15) & 0x7fff); }
ushort clamped(ushort x, ushort low, ushort high) {
    short k = order(x);
    bool number = (x & 0x7fff) <= 0x7c00;
    ushort y = number && k < order(low) ? low : x;
    return number && k > order(high) ? high : y;
}
kernel void f16x2_clamp(global const ushort2 *x, global ushort2 *y, ushort low, ushort high, uint n) {
    uint i = get_global_id(0);
    if (i < n) y[i] = (ushort2)(clamped(x[i].x, low, high), clamped(x[i].y, low, high));
}

kernel void mandelbrot(global uint *counts, uint width, uint height, uint limit, float left, float top, float step) {
    uint column = get_global_id(0), row = get_global_id(1);
    if (column >= width || row >= height) return;
    float re = fma((float)column, step, left), im = top - (float)row * step;
    float x = 0, y = 0;
    uint count = 0;
    while (count < limit) {
        float xx = x * x, yy = y * y;
        if (xx + yy > 4.0f) break;
        y = fma(x + x, y, im);
        x = re + (xx - yy);
        count++;
    }
    counts[row * width + column] = count;
}

kernel void collatz(global uint *out, uint first, uint limit) {
    uint i = get_global_id(0), n = first + i, count = 0;
    while (n != 1 && count < limit) {
        n = n & 1 ? 3 * n + 1 : n >> 1;
        count++;
    }
    out[i] = count;
}

kernel void hash(global uint *out, uint rounds) {
    uint i = get_global_id(0), h = i;
    for (uint round = 0; round < rounds; round++) {
        h ^= round;
        h ^= h >> 16;
        h *= 0x85ebca6bu;
        h ^= h >> 13;
        h *= 0xc2b2ae35u;
        h ^= h >> 16;
    }
    out[i] = h;
}

kernel void nbody(global float4 *out, global const float4 *bodies, uint n) {
    uint i = get_global_id(0);
    float4 own = bodies[i], sum = 0;
    for (uint j = 0; j < n; j++) {
        float4 body = bodies[j];
        float x = body.x - own.x, y = body.y - own.y, z = body.z - own.z;
        float square = fma(z, z, fma(y, y, fma(x, x, 0.01f)));
        float weight = body.w / (square * sqrt(square));
        sum.x = fma(x, weight, sum.x);
        sum.y = fma(y, weight, sum.y);
        sum.z = fma(z, weight, sum.z);
    }
    sum.w = sum.z;
    out[i] = sum;
}

kernel void row_sums(global float *out, global const float *x, uint columns) {
    uint i = get_global_id(0);
    float sum = 0;
    for (uint k = 0; k < columns; k++) sum += x[i * columns + k];
    out[i] = sum;
}

kernel void logistic(global double *out, uint rounds) {
    uint i = get_global_id(0);
    double x = (double)(i + 1) * (1.0 / 2097152.0);
    for (uint round = 0; round < rounds; round++) x *= (1.0 - x) * 3.9;
    out[i] = x;
}

kernel void rational(global double *out, global const double *in) {
    uint i = get_global_id(0);
    double x = in[i];
    double above = fma(fma(fma(fma(x, 1.0 / 3.0, 0.5), x, -1.0), x, 2.0), x, 1.0);
    out[i] = above / fma(fma(fma(x, 0.125, 0.25), x, 0.5), x, 1.0) - x;
}

kernel void gather(global float *out, global const uint *index, global const float4 *table) {
    uint i = get_global_id(0);
    float4 row = table[index[i]];
    float first = fma(row.x, row.y, row.z), second = fma(first, row.w, row.x) * first;
    out[i] = fma(second, row.y, out[i]);
}

kernel void matmul(global const float *a, global const float *b, global float *c, uint m, uint n, uint k) {
    local float tile_a[16][16];
    local float tile_b[16][16];
    uint tx = get_local_id(0), ty = get_local_id(1), row = get_global_id(1), column = get_global_id(0);
    float sum = 0;
    for (uint base = 0; base < k; base += 16) {
        tile_a[ty][tx] = row < m && base + tx < k ? a[row * k + base + tx] : 0;
        tile_b[ty][tx] = base + ty < k && column < n ? b[(base + ty) * n + column] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint i = 0; i < 16; i++) sum = fma(tile_a[ty][i], tile_b[i][tx], sum);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (row < m && column < n) c[row * n + column] = sum;
}

// Shared memory takes the place of shuffles in the next two.
kernel void block_sum(global const float *x, uint n, global float *sums) {
    local float partial[256];
    uint t = get_local_id(0), first = get_group_id(0) * 2048 + t;
    float sum = 0;
    for (uint i = 0; i < 8; i++)
        if (first + i * 256 < n) sum += x[first + i * 256];
    partial[t] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint distance = 128; distance > 0; distance /= 2) {
        if (t < distance) partial[t] += partial[t + distance];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (t == 0) sums[get_group_id(0)] = partial[0];
}

kernel void softmax(global const float *input, global float *output, uint columns) {
    local float partial[256];
    uint t = get_local_id(0);
    global const float *in = input + (size_t)get_group_id(0) * columns;
    global float *out = output + (size_t)get_group_id(0) * columns;
    float greatest = -INFINITY, sum = 0;
    for (uint i = t; i < columns; i += 256) greatest = fmax(greatest, in[i]);
    partial[t] = greatest;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint distance = 128; distance > 0; distance /= 2) {
        if (t < distance) partial[t] = fmax(partial[t], partial[t + distance]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    greatest = partial[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = t; i < columns; i += 256) sum += exp2((in[i] - greatest) * 1.44269504f);
    partial[t] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint distance = 128; distance > 0; distance /= 2) {
        if (t < distance) partial[t] += partial[t + distance];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    sum = partial[0];
    for (uint i = t; i < columns; i += 256) out[i] = exp2((in[i] - greatest) * 1.44269504f) / sum;
}

kernel void histogram(global const uchar *data, uint n, global uint *bins) {
    local uint counts[256];
    uint t = get_local_id(0), first = get_group_id(0) * 4096 + t;
    counts[t] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = 0; i < 16; i++)
        if (first + i * 256 < n) atomic_inc(&counts[data[first + i * 256]]);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (counts[t]) atomic_add(&bins[t], counts[t]);
}

kernel void stencil(global float *out, global const float *in, uint width) {
    local float tile[10][34];
    uint x = get_local_id(0), y = get_local_id(1), pitch = width + 2;
    uint at = (get_group_id(1) * 8 + y) * pitch + get_group_id(0) * 32 + x;
    tile[y][x] = in[at];
    if (x < 2) tile[y][x + 32] = in[at + 32];
    if (y < 2) tile[y + 8][x] = in[at + 8 * pitch];
    if (x < 2 && y < 2) tile[y + 8][x + 32] = in[at + 8 * pitch + 32];
    barrier(CLK_LOCAL_MEM_FENCE);
    float sum = tile[y][x + 1] + tile[y + 1][x] + tile[y + 1][x + 1] + tile[y + 1][x + 2] + tile[y + 2][x + 1];
    out[get_global_id(1) * width + get_global_id(0)] = sum * 0.2f;
}

kernel void transpose(global float *out, global const float *in, uint width) {
    local float tile[32][33];
    uint x = get_local_id(0), y = get_local_id(1), left = get_group_id(0) * 32, top = get_group_id(1) * 32;
    for (uint i = 0; i < 32; i += 8) tile[y + i][x] = in[(top + y + i) * width + left + x];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = 0; i < 32; i += 8) out[(left + y + i) * width + top + x] = tile[x][y + i];
}

kernel void normalize_rows(global float4 *out, global const float4 *in) {
    local float partial[32];
    uint t = get_local_id(0), i = get_global_id(0);
    float4 v = in[i];
    partial[t] = fma(v.w, v.w, fma(v.z, v.z, fma(v.y, v.y, v.x * v.x)));
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint distance = 16; distance > 0; distance /= 2) {
        if (t < distance) partial[t] += partial[t + distance];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    out[i] = v * (1.0f / sqrt(partial[0]));
}
