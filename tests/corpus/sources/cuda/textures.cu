// nvcc: sm_75 sm_90 sm_100

// Reads textures of all shapes, and writes surfaces.
extern "C" __global__ void textures(cudaTextureObject_t line, cudaTextureObject_t plane, cudaTextureObject_t space, cudaTextureObject_t layers, float4 *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float u = i * 0.25f;
    float4 a = tex1Dfetch<float4>(line, i);
    float4 b = tex2D<float4>(plane, u, 0.5f * u);
    float c = tex3D<float>(space, u, u, 1.5f);
    float4 d = tex2DLod<float4>(plane, u, u, 1.0f);
    int4 e = tex2DLayered<int4>(layers, u, u, i % 2);
    float4 g = tex2Dgather<float4>(plane, u, u, 1);
    out[i] = make_float4(a.x + b.x, a.y + c + d.y, a.z + e.z, a.w + b.w + g.x);
}

extern "C" __global__ void surfaces(cudaSurfaceObject_t from, cudaSurfaceObject_t to, int width)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x >= width) return;
    uchar4 v = surf2Dread<uchar4>(from, x * 4, y, cudaBoundaryModeZero);
    surf2Dwrite(make_uchar4(v.w, v.z, v.y, v.x), to, x * 4, y, cudaBoundaryModeClamp);
}
