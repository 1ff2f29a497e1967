//! The driver's C functions that tests and examples call, declared once.

use std::ffi::{c_char, c_int, c_uint, c_void};

use cudarc::driver::sys::{
    CUDA_ARRAY_DESCRIPTOR, CUDA_ARRAY3D_DESCRIPTOR, CUDA_KERNEL_NODE_PARAMS, CUDA_MEM_ALLOC_NODE_PARAMS,
    CUDA_MEMCPY2D, CUDA_RESOURCE_DESC, CUDA_RESOURCE_VIEW_DESC, CUDA_TEXTURE_DESC, CUarray, CUlaunchConfig,
    CUmipmappedArray, CUtexref,
};

pub type Handle = *mut c_void;

unsafe extern "C" {
    pub fn cuArray3DCreate_v2(result: *mut CUarray, description: *const CUDA_ARRAY3D_DESCRIPTOR) -> u32;
    pub fn cuArrayCreate_v2(result: *mut CUarray, description: *const CUDA_ARRAY_DESCRIPTOR) -> u32;
    pub fn cuArrayDestroy(array: CUarray) -> u32;
    pub fn cuCtxCreate_v2(result: *mut Handle, flags: c_uint, device: c_int) -> u32;
    pub fn cuCtxDestroy_v2(context: Handle) -> u32;
    pub fn cuCtxGetCurrent(context: *mut Handle) -> u32;
    pub fn cuCtxPopCurrent_v2(context: *mut Handle) -> u32;
    pub fn cuCtxPushCurrent_v2(context: Handle) -> u32;
    pub fn cuCtxSetCurrent(context: Handle) -> u32;
    pub fn cuCtxSynchronize() -> u32;
    pub fn cuDeviceGetAttribute(result: *mut c_int, attribute: c_uint, device: c_int) -> u32;
    pub fn cuDevicePrimaryCtxReset_v2(device: i32) -> u32;
    pub fn cuDevicePrimaryCtxRetain(result: *mut Handle, device: c_int) -> u32;
    pub fn cuEventCreate(result: *mut Handle, flags: c_uint) -> u32;
    pub fn cuEventElapsedTime(result: *mut f32, start: Handle, end: Handle) -> u32;
    pub fn cuEventQuery(event: Handle) -> u32;
    pub fn cuEventRecord(event: Handle, stream: Handle) -> u32;
    pub fn cuEventSynchronize(event: Handle) -> u32;
    pub fn cuFuncGetAttribute(result: *mut c_int, attribute: c_uint, function: Handle) -> u32;
    pub fn cuFuncSetAttribute(function: Handle, attribute: c_uint, value: c_int) -> u32;
    pub fn cuGetErrorName(status: c_uint, name: *mut *const c_char) -> u32;
    pub fn cuGraphAddChildGraphNode(
        result: *mut Handle,
        graph: Handle,
        behind: *const Handle,
        count: usize,
        child: Handle,
    ) -> u32;
    pub fn cuGraphAddKernelNode_v2(
        result: *mut Handle,
        graph: Handle,
        behind: *const Handle,
        count: usize,
        params: *const CUDA_KERNEL_NODE_PARAMS,
    ) -> u32;
    pub fn cuGraphAddMemAllocNode(
        result: *mut Handle,
        graph: Handle,
        behind: *const Handle,
        count: usize,
        params: *mut CUDA_MEM_ALLOC_NODE_PARAMS,
    ) -> u32;
    pub fn cuGraphAddMemFreeNode(
        result: *mut Handle,
        graph: Handle,
        behind: *const Handle,
        count: usize,
        address: u64,
    ) -> u32;
    pub fn cuGraphAddNode_v2(
        result: *mut Handle,
        graph: Handle,
        behind: *const Handle,
        edges: *const c_void,
        count: usize,
        params: *mut [u64; 32],
    ) -> u32;
    pub fn cuGraphChildGraphNodeGetGraph(node: Handle, graph: *mut Handle) -> u32;
    pub fn cuGraphClone(result: *mut Handle, graph: Handle) -> u32;
    pub fn cuGraphConditionalHandleCreate(
        result: *mut u64,
        graph: Handle,
        context: Handle,
        value: c_uint,
        flags: c_uint,
    ) -> u32;
    pub fn cuGraphCreate(result: *mut Handle, flags: c_uint) -> u32;
    pub fn cuGraphDestroy(graph: Handle) -> u32;
    pub fn cuGraphExecChildGraphNodeSetParams(exec: Handle, node: Handle, child: Handle) -> u32;
    pub fn cuGraphExecDestroy(exec: Handle) -> u32;
    pub fn cuGraphExecKernelNodeSetParams_v2(
        exec: Handle,
        node: Handle,
        params: *const CUDA_KERNEL_NODE_PARAMS,
    ) -> u32;
    pub fn cuGraphExecUpdate_v2(exec: Handle, graph: Handle, info: *mut [u64; 4]) -> u32;
    pub fn cuGraphGetNodes(graph: Handle, nodes: *mut Handle, count: *mut usize) -> u32;
    pub fn cuGraphInstantiateWithFlags(result: *mut Handle, graph: Handle, flags: u64) -> u32;
    pub fn cuGraphKernelNodeSetAttribute(node: Handle, attribute: c_uint, value: *const c_void) -> u32;
    pub fn cuGraphKernelNodeSetParams_v2(node: Handle, params: *const CUDA_KERNEL_NODE_PARAMS) -> u32;
    pub fn cuGraphLaunch(exec: Handle, stream: Handle) -> u32;
    pub fn cuGraphMemsetNodeSetParams(node: Handle, params: *const c_void) -> u32;
    pub fn cuInit(flags: c_uint) -> u32;
    pub fn cuLaunchHostFunc(
        stream: Handle,
        function: Option<unsafe extern "C-unwind" fn(*mut c_void)>,
        argument: *mut c_void,
    ) -> u32;
    pub fn cuLaunchKernel(
        function: Handle,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared: c_uint,
        stream: Handle,
        params: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> u32;
    pub fn cuLaunchKernelEx(
        config: *const CUlaunchConfig,
        function: Handle,
        params: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> u32;
    pub fn cuLibraryGetKernel(result: *mut Handle, library: Handle, name: *const c_char) -> u32;
    pub fn cuLibraryLoadData(
        result: *mut Handle,
        code: *const c_void,
        jit_options: *mut c_uint,
        jit_values: *mut Handle,
        jit_count: c_uint,
        options: *mut c_uint,
        values: *mut Handle,
        count: c_uint,
    ) -> u32;
    pub fn cuLinkAddData_v2(
        linker: Handle,
        kind: c_uint,
        data: *mut c_void,
        bytes: usize,
        name: *const c_char,
        count: c_uint,
        options: *mut c_uint,
        values: *mut Handle,
    ) -> u32;
    pub fn cuLinkComplete(linker: Handle, image: *mut Handle, bytes: *mut usize) -> u32;
    pub fn cuLinkCreate_v2(
        count: c_uint,
        options: *mut c_uint,
        values: *mut Handle,
        result: *mut Handle,
    ) -> u32;
    pub fn cuLinkDestroy(linker: Handle) -> u32;
    pub fn cuMemAddressFree(address: u64, bytes: usize) -> u32;
    pub fn cuMemAddressReserve(result: *mut u64, bytes: usize, align: usize, wanted: u64, flags: u64) -> u32;
    pub fn cuMemAllocAsync(result: *mut u64, bytes: usize, stream: Handle) -> u32;
    pub fn cuMemAllocFromPoolAsync(result: *mut u64, bytes: usize, pool: Handle, stream: Handle) -> u32;
    pub fn cuMemAllocHost_v2(result: *mut *mut c_void, bytes: usize) -> u32;
    pub fn cuMemAllocManaged(result: *mut u64, bytes: usize, flags: c_uint) -> u32;
    pub fn cuMemAlloc_v2(result: *mut u64, bytes: usize) -> u32;
    pub fn cuMemCreate(result: *mut u64, bytes: usize, properties: *const c_void, flags: u64) -> u32;
    pub fn cuMemFreeAsync(address: u64, stream: Handle) -> u32;
    pub fn cuMemFreeHost(pointer: *mut c_void) -> u32;
    pub fn cuMemFree_v2(address: u64) -> u32;
    pub fn cuMemGetAllocationPropertiesFromHandle(result: *mut c_void, handle: u64) -> u32;
    pub fn cuMemGetAddressRange_v2(base: *mut u64, bytes: *mut usize, address: u64) -> u32;
    pub fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> u32;
    pub fn cuMemHostRegister_v2(pointer: *mut c_void, bytes: usize, flags: c_uint) -> u32;
    pub fn cuMemHostUnregister(pointer: *mut c_void) -> u32;
    pub fn cuMemMap(address: u64, bytes: usize, offset: usize, handle: u64, flags: u64) -> u32;
    pub fn cuMemPoolCreate(result: *mut Handle, properties: *const [u32; 32]) -> u32;
    pub fn cuMemPoolDestroy(pool: Handle) -> u32;
    pub fn cuMemPoolGetAttribute(pool: Handle, attribute: c_uint, value: *mut u64) -> u32;
    pub fn cuMemPoolSetAttribute(pool: Handle, attribute: c_uint, value: *mut u64) -> u32;
    pub fn cuMemPoolTrimTo(pool: Handle, bytes: usize) -> u32;
    pub fn cuMemRelease(handle: u64) -> u32;
    pub fn cuMemUnmap(address: u64, bytes: usize) -> u32;
    pub fn cuMemcpy(to: u64, from: u64, bytes: usize) -> u32;
    pub fn cuMemcpy2D_v2(copy: *const CUDA_MEMCPY2D) -> u32;
    pub fn cuMemcpyAtoH_v2(to: *mut c_void, from: CUarray, offset: usize, bytes: usize) -> u32;
    pub fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: Handle) -> u32;
    pub fn cuMemcpyDtoD_v2(to: u64, from: u64, bytes: usize) -> u32;
    pub fn cuMemcpyDtoHAsync_v2(to: *mut c_void, from: u64, bytes: usize, stream: Handle) -> u32;
    pub fn cuMemcpyDtoH_v2(to: *mut c_void, from: u64, bytes: usize) -> u32;
    pub fn cuMemcpyHtoDAsync_v2(to: u64, from: *const c_void, bytes: usize, stream: Handle) -> u32;
    pub fn cuMemcpyHtoD_v2(to: u64, from: *const c_void, bytes: usize) -> u32;
    pub fn cuMemsetD2D8_v2(address: u64, pitch: usize, value: u8, width: usize, height: usize) -> u32;
    pub fn cuMemsetD32Async(address: u64, value: c_uint, count: usize, stream: Handle) -> u32;
    pub fn cuPointerGetAttribute(result: *mut c_void, attribute: c_uint, address: u64) -> u32;
    pub fn cuMemsetD32_v2(address: u64, value: c_uint, count: usize) -> u32;
    pub fn cuMemsetD8Async(address: u64, value: u8, count: usize, stream: Handle) -> u32;
    pub fn cuMemsetD8_v2(address: u64, value: u8, count: usize) -> u32;
    pub fn cuModuleGetFunction(result: *mut Handle, module: Handle, name: *const c_char) -> u32;
    pub fn cuModuleGetGlobal_v2(
        address: *mut u64,
        bytes: *mut usize,
        module: Handle,
        name: *const c_char,
    ) -> u32;
    pub fn cuModuleGetTexRef(result: *mut CUtexref, module: Handle, name: *const c_char) -> u32;
    pub fn cuModuleLoadData(result: *mut Handle, image: *const c_void) -> u32;
    pub fn cuModuleLoadDataEx(
        result: *mut Handle,
        image: *const c_void,
        count: c_uint,
        options: *mut c_uint,
        values: *mut Handle,
    ) -> u32;
    pub fn cuModuleUnload(module: Handle) -> u32;
    pub fn cuStreamAddCallback(
        stream: Handle,
        function: Option<unsafe extern "C-unwind" fn(Handle, u32, *mut c_void)>,
        data: *mut c_void,
        flags: c_uint,
    ) -> u32;
    pub fn cuStreamBeginCaptureToGraph(
        stream: Handle,
        graph: Handle,
        behind: *const Handle,
        data: *const c_void,
        count: usize,
        mode: c_uint,
    ) -> u32;
    pub fn cuStreamBeginCapture_v2(stream: Handle, mode: c_uint) -> u32;
    pub fn cuStreamCreate(result: *mut Handle, flags: c_uint) -> u32;
    pub fn cuStreamDestroy_v2(stream: Handle) -> u32;
    pub fn cuStreamEndCapture(stream: Handle, graph: *mut Handle) -> u32;
    pub fn cuStreamQuery(stream: Handle) -> u32;
    pub fn cuStreamSynchronize(stream: Handle) -> u32;
    pub fn cuStreamWaitEvent(stream: Handle, event: Handle, flags: c_uint) -> u32;
    pub fn cuStreamWaitValue32_v2(stream: Handle, address: u64, value: u32, flags: c_uint) -> u32;
    pub fn cuStreamWriteValue32_v2(stream: Handle, address: u64, value: u32, flags: c_uint) -> u32;
    pub fn cuSurfObjectCreate(result: *mut u64, resource: *const CUDA_RESOURCE_DESC) -> u32;
    pub fn cuSurfObjectDestroy(object: u64) -> u32;
    pub fn cuTensorMapEncodeIm2col(
        map: *mut c_void,
        element: c_uint,
        rank: c_uint,
        address: *mut c_void,
        extents: *const u64,
        strides: *const u64,
        lower: *const c_int,
        upper: *const c_int,
        channels: c_uint,
        pixels: c_uint,
        steps: *const u32,
        interleave: c_uint,
        swizzle: c_uint,
        promotion: c_uint,
        fill: c_uint,
    ) -> u32;
    pub fn cuTensorMapEncodeIm2colWide(
        map: *mut c_void,
        element: c_uint,
        rank: c_uint,
        address: *mut c_void,
        extents: *const u64,
        strides: *const u64,
        lower: c_int,
        upper: c_int,
        channels: c_uint,
        pixels: c_uint,
        steps: *const u32,
        interleave: c_uint,
        mode: c_uint,
        swizzle: c_uint,
        promotion: c_uint,
        fill: c_uint,
    ) -> u32;
    pub fn cuTensorMapEncodeTiled(
        map: *mut c_void,
        element: c_uint,
        rank: c_uint,
        address: *mut c_void,
        extents: *const u64,
        strides: *const u64,
        taken: *const u32,
        steps: *const u32,
        interleave: c_uint,
        swizzle: c_uint,
        promotion: c_uint,
        fill: c_uint,
    ) -> u32;
    pub fn cuTensorMapReplaceAddress(map: *mut c_void, address: *mut c_void) -> u32;
    pub fn cuTensorMapSetAllocationClass(map: *mut c_void, class: c_uint, effective: *mut c_uint) -> u32;
    pub fn cuTexObjectCreate(
        result: *mut u64,
        resource: *const CUDA_RESOURCE_DESC,
        description: *const CUDA_TEXTURE_DESC,
        view: *const CUDA_RESOURCE_VIEW_DESC,
    ) -> u32;
    pub fn cuTexObjectDestroy(object: u64) -> u32;
    pub fn cuMipmappedArrayCreate(
        result: *mut CUmipmappedArray,
        description: *const CUDA_ARRAY3D_DESCRIPTOR,
        levels: c_uint,
    ) -> u32;
    pub fn cuMipmappedArrayDestroy(array: CUmipmappedArray) -> u32;
    pub fn cuMipmappedArrayGetLevel(result: *mut CUarray, of: CUmipmappedArray, level: c_uint) -> u32;
    pub fn cuTexRefSetArray(reference: CUtexref, array: CUarray, flags: c_uint) -> u32;
    pub fn cuTexRefSetFlags(reference: CUtexref, flags: c_uint) -> u32;
}
