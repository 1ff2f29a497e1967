//! Arrays, textures and surfaces as a program uses them: through the driver's C functions.

mod driver;

use std::ffi::{CStr, c_void};
use std::mem::zeroed;
use std::ptr::null_mut;

use cudarc::driver::sys::{
    CUDA_ARRAY_DESCRIPTOR, CUDA_ARRAY3D_DESCRIPTOR, CUDA_MEMCPY2D, CUDA_RESOURCE_DESC,
    CUDA_RESOURCE_VIEW_DESC, CUDA_TEXTURE_DESC, CUaddress_mode, CUarray, CUarray_format, CUfilter_mode,
    CUmemorytype, CUresourceViewFormat, CUresourcetype,
};

use driver::*;

const PTX: &CStr = c"
.version 7.0
.target sm_70
.address_size 64
.global .texref reference;

.visible .entry fetch(.param .u64 texture, .param .u64 out) {
    .reg .b64 %t, %o;  .reg .u32 %i;  .reg .f32 %x, %y, %a, %b, %c, %d;
    ld.param.u64 %t, [texture];
    ld.param.u64 %o, [out];
    mov.u32 %i, %tid.x;
    cvt.rn.f32.u32 %x, %i;
    mov.f32 %y, 0f3F800000;
    tex.2d.v4.f32.f32 {%a, %b, %c, %d}, [%t, {%x, %y}];
    mad.wide.u32 %o, %i, 4, %o;
    st.global.f32 [%o], %a;
    ret;
}
.visible .entry by_reference(.param .u64 unused, .param .u64 out) {
    .reg .b64 %o;  .reg .u32 %i;  .reg .f32 %x, %y;  .reg .u32 %a, %b, %c, %d;
    ld.param.u64 %o, [out];
    mov.u32 %i, %tid.x;
    cvt.rn.f32.u32 %x, %i;
    mov.f32 %y, 0f40000000;
    tex.2d.v4.u32.f32 {%a, %b, %c, %d}, [reference, {%x, %y}];
    mad.wide.u32 %o, %i, 4, %o;
    st.global.u32 [%o], %a;
    ret;
}
.visible .entry store(.param .u64 surface, .param .u64 unused) {
    .reg .b64 %s;  .reg .u32 %i, %x;
    ld.param.u64 %s, [surface];
    mov.u32 %i, %tid.x;
    shl.b32 %x, %i, 2;
    sust.b.2d.b32.trap [%s, {%x, 0}], {%i};
    ret;
}
";

fn module() -> Handle {
    driver::start();
    driver::load(PTX)
}

/// Runs a kernel in one block.
fn launch(module: Handle, name: &CStr, threads: u32, object: u64, out: u64) {
    let function = driver::function(module, name);
    let mut params = [&raw const object, &raw const out].map(|param| param.cast_mut().cast::<c_void>());
    ok!(cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, null_mut(), params.as_mut_ptr(), null_mut()));
    ok!(cuCtxSynchronize());
}

fn words<T: Copy + Default, const N: usize>(address: u64) -> [T; N] {
    let mut values = [T::default(); N];
    ok!(cuMemcpyDtoH_v2(values.as_mut_ptr().cast(), address, size_of_val(&values)));
    values
}

/// An array of 4 x 3 with these elements.
fn plane(format: CUarray_format, elements: &[u32; 12]) -> CUarray {
    let description = CUDA_ARRAY_DESCRIPTOR { Width: 4, Height: 3, Format: format, NumChannels: 1 };
    let mut array = null_mut();
    ok!(cuArrayCreate_v2(&raw mut array, &raw const description));
    fill(array, elements);
    array
}

/// Copies elements into an array of 4 x 3.
fn fill(array: CUarray, elements: &[u32; 12]) {
    let mut copy = std::mem::MaybeUninit::<CUDA_MEMCPY2D>::zeroed();
    let at = copy.as_mut_ptr();
    // SAFETY: these are its fields.
    unsafe {
        (*at).srcMemoryType = CUmemorytype::CU_MEMORYTYPE_HOST;
        (*at).srcHost = elements.as_ptr().cast();
        (*at).srcPitch = 16;
        (*at).dstMemoryType = CUmemorytype::CU_MEMORYTYPE_ARRAY;
        (*at).dstArray = array;
        (*at).WidthInBytes = 16;
        (*at).Height = 3;
    }
    ok!(cuMemcpy2D_v2(at));
    // A row too many.
    // SAFETY: as above.
    unsafe { (*at).dstY = 1 };
    ends!(INVALID_VALUE, cuMemcpy2D_v2(at));
}

fn of_array(array: CUarray) -> CUDA_RESOURCE_DESC {
    // SAFETY: zeros are an array that is null.
    let mut resource: CUDA_RESOURCE_DESC = unsafe { zeroed() };
    resource.resType = CUresourcetype::CU_RESOURCE_TYPE_ARRAY;
    resource.res.array.hArray = array;
    resource
}

#[test]
fn a_texture_object_filters_and_clamps() {
    let module = module();
    let elements = std::array::from_fn(|i| (i as f32).to_bits());
    let array = plane(CUarray_format::CU_AD_FORMAT_FLOAT, &elements);
    // SAFETY: zeros are point sampling, and wrapping.
    let mut description: CUDA_TEXTURE_DESC = unsafe { zeroed() };
    description.addressMode = [CUaddress_mode::CU_TR_ADDRESS_MODE_CLAMP; 3];
    description.filterMode = CUfilter_mode::CU_TR_FILTER_MODE_LINEAR;
    let (resource, out, mut texture) = (of_array(array), allocate(64), 0);
    ok!(cuTexObjectCreate(&raw mut texture, &raw const resource, &raw const description, std::ptr::null()));
    launch(module, c"fetch", 5, texture, out);
    // Between rows 0 and 1, and columns: x = 1 lies between the centres 0.5 and 1.5.
    assert_eq!(words::<f32, 5>(out), [2.0, 2.5, 3.5, 4.5, 5.0]);
    ok!(cuTexObjectDestroy(texture));
    ok!(cuArrayDestroy(array));
}

#[test]
fn a_texture_reference_is_bound_to_an_array() {
    let module = module();
    let array = plane(CUarray_format::CU_AD_FORMAT_UNSIGNED_INT32, &std::array::from_fn(|i| 100 + i as u32));
    let mut reference = null_mut();
    ends!(500, cuModuleGetTexRef(&raw mut reference, module, c"nothing".as_ptr()));
    ok!(cuModuleGetTexRef(&raw mut reference, module, c"reference".as_ptr()));
    ok!(cuTexRefSetFlags(reference, 1));
    ok!(cuTexRefSetArray(reference, array, 1));
    let out = allocate(64);
    launch(module, c"by_reference", 4, 0, out);
    assert_eq!(words::<u32, 4>(out), [108, 109, 110, 111]);
}

#[test]
fn a_surface_object_is_written() {
    let module = module();
    let description = CUDA_ARRAY3D_DESCRIPTOR {
        Width: 8,
        Height: 2,
        Depth: 0,
        Format: CUarray_format::CU_AD_FORMAT_UNSIGNED_INT32,
        NumChannels: 1,
        Flags: 2,
    };
    let (mut array, mut surface) = (null_mut(), 0);
    ok!(cuArray3DCreate_v2(&raw mut array, &raw const description));
    let resource = of_array(array);
    ok!(cuSurfObjectCreate(&raw mut surface, &raw const resource));
    launch(module, c"store", 8, surface, 0);
    let mut row = [0u32; 8];
    ok!(cuMemcpyAtoH_v2(row.as_mut_ptr().cast(), array, 0, 32));
    assert_eq!(row, [0, 1, 2, 3, 4, 5, 6, 7]);
    ok!(cuSurfObjectDestroy(surface));
    // An array that was not made to be a surface (slang-rhi).
    let plane = plane(CUarray_format::CU_AD_FORMAT_UNSIGNED_INT32, &[0; 12]);
    let resource = of_array(plane);
    ok!(cuSurfObjectCreate(&raw mut surface, &raw const resource));
}

/// Dr.Jit views arrays as what they are, in the first two formats.
#[test]
fn a_view_reads_texels_in_another_format_of_their_size() {
    let module = module();
    let elements = std::array::from_fn(|i| 0x4080_0000 + i as u32);
    let array = plane(CUarray_format::CU_AD_FORMAT_FLOAT, &elements);
    let (resource, out, mut texture) = (of_array(array), allocate(64), 0);
    // SAFETY: zeros are point sampling and wrapping, and a view in no format.
    let (mut description, mut view) =
        unsafe { (zeroed::<CUDA_TEXTURE_DESC>(), zeroed::<CUDA_RESOURCE_VIEW_DESC>()) };
    description.flags = 1;
    (view.width, view.height) = (4, 3);
    let row = [4, 5, 6, 7].map(|low| 0x4080_0000 + low);
    for (format, row) in [
        (CUresourceViewFormat::CU_RES_VIEW_FORMAT_NONE, row),
        (CUresourceViewFormat::CU_RES_VIEW_FORMAT_FLOAT_1X32, row),
        // The channels of a texel: its halves.
        (CUresourceViewFormat::CU_RES_VIEW_FORMAT_UINT_2X16, [4, 5, 6, 7]),
        (CUresourceViewFormat::CU_RES_VIEW_FORMAT_SINT_1X32, row),
    ] {
        view.format = format;
        ok!(cuTexObjectCreate(
            &raw mut texture,
            &raw const resource,
            &raw const description,
            &raw const view
        ));
        launch(module, c"fetch", 4, texture, out);
        assert_eq!(words::<u32, 4>(out), row, "{format:?}");
        ok!(cuTexObjectDestroy(texture));
    }
    for (status, change) in [
        (1, (|view| view.format = CUresourceViewFormat::CU_RES_VIEW_FORMAT_UINT_4X16) as Change),
        (1, |view| view.width = 2),
        (1, |view| view.firstLayer = 1),
        (1, |view| view.firstMipmapLevel = 1),
        (801, |view| view.format = CUresourceViewFormat::CU_RES_VIEW_FORMAT_UNSIGNED_BC1),
    ] {
        let mut other = view;
        change(&mut other);
        let (resource, description, other) = (&raw const resource, &raw const description, &raw const other);
        ends!(status, cuTexObjectCreate(&raw mut texture, resource, description, other));
    }
    ok!(cuArrayDestroy(array));
}

type Change = fn(&mut CUDA_RESOURCE_VIEW_DESC);

/// slang-rhi makes mipmaps so: it reads one level, and writes the next.
#[test]
fn a_view_reads_some_levels_of_a_mipmapped_array() {
    let module = module();
    let size = CUDA_ARRAY3D_DESCRIPTOR {
        Width: 8,
        Height: 6,
        Depth: 0,
        Format: CUarray_format::CU_AD_FORMAT_FLOAT,
        NumChannels: 1,
        Flags: 0,
    };
    let (mut array, mut level, mut texture) = (null_mut(), null_mut(), 0);
    ok!(cuMipmappedArrayCreate(&raw mut array, &raw const size, 3));
    ok!(cuMipmappedArrayGetLevel(&raw mut level, array, 1));
    fill(level, &std::array::from_fn(|i| (i as f32).to_bits()));
    // SAFETY: zeros are point sampling and wrapping, and a view in no format; the array is the member for its type.
    let (description, mut view, mut resource) = unsafe {
        (zeroed::<CUDA_TEXTURE_DESC>(), zeroed::<CUDA_RESOURCE_VIEW_DESC>(), zeroed::<CUDA_RESOURCE_DESC>())
    };
    resource.resType = CUresourcetype::CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    resource.res.mipmap.hMipmappedArray = array;
    (view.width, view.height) = (8, 6);
    view.format = CUresourceViewFormat::CU_RES_VIEW_FORMAT_FLOAT_1X32;
    (view.firstMipmapLevel, view.lastMipmapLevel) = (1, 2);
    ok!(cuTexObjectCreate(&raw mut texture, &raw const resource, &raw const description, &raw const view));
    let out = allocate(64);
    launch(module, c"fetch", 4, texture, out);
    assert_eq!(words::<f32, 4>(out), [4.0, 5.0, 6.0, 7.0]);
    ok!(cuTexObjectDestroy(texture));
    ok!(cuMipmappedArrayDestroy(array));
}
