// What CUDA C++ makes of textures and surfaces; forms.ptx is this file compiled by nvcc 13: nvcc -arch=compute_75 -ptx forms.cu
extern "C" __global__ void forms(cudaTextureObject_t line, cudaTextureObject_t plane, cudaTextureObject_t volume,
                                 cudaTextureObject_t lines, cudaTextureObject_t planes, cudaTextureObject_t cube,
                                 cudaTextureObject_t cubes, cudaTextureObject_t linear, cudaTextureObject_t bytes,
                                 cudaSurfaceObject_t flat, cudaSurfaceObject_t solid, cudaSurfaceObject_t layered,
                                 cudaSurfaceObject_t faces, float* out, float x, float y, float z, int layer)
{
    int i = 0;
    bool resident;
    out[i++] = tex1D<float>(line, x);
    out[i++] = tex2D<float>(plane, x, y);
    out[i++] = tex3D<float>(volume, x, y, z);
    out[i++] = tex1DLayered<float>(lines, x, layer);
    out[i++] = tex2DLayered<float4>(planes, x, y, layer).w;
    out[i++] = texCubemap<float>(cube, x, y, z);
    out[i++] = texCubemapLayered<float>(cubes, x, y, z, layer);
    out[i++] = tex1Dfetch<int>(linear, layer);
    out[i++] = tex2D<uchar4>(bytes, x, y).y;
    out[i++] = tex2DLod<float>(plane, x, y, z) + tex2DGrad<float>(plane, x, y, make_float2(x, y), make_float2(y, x));
    out[i++] = tex3DGrad<float>(volume, x, y, z, make_float4(x, y, z, 0), make_float4(x, y, z, 0));
    out[i++] = texCubemapLod<float>(cube, x, y, z, 1.f);
    float4 around = tex2Dgather<float4>(plane, x, y, 0);
    out[i++] = around.x + around.y + around.z + around.w;
    float value = tex2D<float>(plane, x, y, &resident);
    out[i++] = resident ? value : -1;
    surf2Dwrite(x, flat, layer * 4, layer);
    surf2Dwrite<short>(0x4040, flat, 2, 0, cudaBoundaryModeClamp);
    surf2Dwrite<unsigned char>(0x12, flat, -1, layer, cudaBoundaryModeZero);
    out[i++] = surf2Dread<float>(flat, layer * 4, layer);
    out[i++] = surf2Dread<float>(flat, 0, 0);
    surf3Dwrite(make_float4(x, y, z, 7), solid, 16, 1, 1);
    out[i++] = surf3Dread<float4>(solid, 16 * 9, 9, 9, cudaBoundaryModeClamp).w;
    surf2DLayeredwrite(make_uchar4(1, 2, 3, 4), layered, 4 * layer, 0, 1);
    out[i++] = surf2DLayeredread<uchar4>(layered, 4 * layer, 0, 1).z;
    out[i++] = surf2DLayeredread<uchar4>(layered, 4 * layer, 0, 9, cudaBoundaryModeZero).z;
    surfCubemapwrite(make_float2(x, 5), faces, 8 * layer, 0, 4);
    out[i++] = surfCubemapread<float2>(faces, 8 * layer, 0, 4).y;
}
