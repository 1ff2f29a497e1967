//! Launches in clusters: the attribute of a launch, what a kernel requires, and what is refused.

mod driver;

use std::ffi::{CStr, c_uint, c_void};
use std::ptr::{null, null_mut};

use cudarc::driver::sys::{CUDA_KERNEL_NODE_PARAMS, CUlaunchAttribute, CUlaunchConfig};

use driver::*;

/// `CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION`.
const CLUSTER_DIMENSION: c_uint = 4;
const INVALID_CLUSTER_SIZE: u32 = 912;
/// `CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH` and `.._NON_PORTABLE_CLUSTER_SIZE_ALLOWED`.
const REQUIRED_WIDTH: c_uint = 11;
const NON_PORTABLE: c_uint = 14;

/// Block b writes the rank that it reads in the memory of the next block of its cluster.
const PTX: &CStr = c"
.version 8.0
.target sm_90
.address_size 64
.visible .entry any(.param .u64 out) {
    .reg .u32 %r<6>; .reg .u64 %out;
    .shared .align 4 .b8 rank[4];
    mov.u32 %r0, %cluster_ctarank;
    st.shared.u32 [rank], %r0;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    mov.u32 %r1, %cluster_nctarank;
    add.u32 %r2, %r0, 1;
    rem.u32 %r2, %r2, %r1;
    mapa.shared::cluster.u32 %r3, rank, %r2;
    ld.shared::cluster.u32 %r4, [%r3];
    barrier.cluster.arrive;
    barrier.cluster.wait;
    ld.param.u64 %out, [out];
    mov.u32 %r5, %ctaid.x;
    mad.wide.u32 %out, %r5, 4, %out;
    st.global.u32 [%out], %r4;
    ret;
}
.visible .entry pairs(.param .u64 out) .reqnctapercluster 2 { ret; }
";

/// A launch of so many blocks in clusters.
unsafe fn launch(function: Handle, out: u64, blocks: u32, cluster: Option<[u32; 3]>) -> u32 {
    let mut out = out;
    // SAFETY: all of it are numbers and pointers, which may be zero.
    let (mut config, mut attribute): (CUlaunchConfig, CUlaunchAttribute) =
        unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    (config.gridDimX, config.gridDimY, config.gridDimZ) = (blocks, 1, 1);
    (config.blockDimX, config.blockDimY, config.blockDimZ) = (1, 1, 1);
    if let Some(cluster) = cluster {
        // SAFETY: an attribute begins with its number, and its value has room for three.
        unsafe {
            (&raw mut attribute.id).cast::<u32>().write(CLUSTER_DIMENSION);
            (&raw mut attribute.value).cast::<[u32; 3]>().write(cluster);
        }
        (config.attrs, config.numAttrs) = (&raw mut attribute, 1);
    }
    let mut params = [(&raw mut out).cast::<c_void>()];
    // SAFETY: the configuration and the parameters live until the call returns.
    unsafe { cuLaunchKernelEx(&raw const config, function, params.as_mut_ptr(), null_mut()) }
}

#[test]
fn clusters_are_those_of_the_attribute_or_of_the_kernel() {
    driver::start();
    let module = driver::load(PTX);
    let (any, pairs) = (driver::function(module, c"any"), driver::function(module, c"pairs"));
    // SAFETY: pointers of this function; the kernels write what is allocated.
    unsafe {
        let (mut out, mut read) = (0, [0u32; 16]);
        assert_eq!(cuMemAlloc_v2(&raw mut out, 64), 0);
        for (cluster, ranks) in [
            (None, [0, 0, 0, 0]),
            (Some([0, 0, 0]), [0, 0, 0, 0]),
            (Some([2, 1, 1]), [1, 0, 1, 0]),
            (Some([4, 1, 1]), [1, 2, 3, 0]),
        ] {
            assert_eq!(launch(any, out, 4, cluster), 0, "{cluster:?}");
            assert_eq!(cuCtxSynchronize(), 0);
            assert_eq!(cuMemcpyDtoH_v2(read.as_mut_ptr().cast(), out, 16), 0);
            assert_eq!(read[..4], ranks, "{cluster:?}");
        }
        // No multiple, and more blocks than every GPU has room for, unless that is allowed.
        assert_eq!(launch(any, out, 4, Some([3, 1, 1])), INVALID_CLUSTER_SIZE);
        assert_eq!(launch(any, out, 16, Some([16, 1, 1])), INVALID_CLUSTER_SIZE);
        assert_eq!(cuFuncSetAttribute(any, NON_PORTABLE, 1), 0);
        assert_eq!(launch(any, out, 16, Some([16, 1, 1])), 0);
        assert_eq!(launch(any, out, 32, Some([32, 1, 1])), INVALID_CLUSTER_SIZE);
        // What the kernel requires.
        let mut width = 0;
        assert_eq!(cuFuncGetAttribute(&raw mut width, REQUIRED_WIDTH, pairs), 0);
        assert_eq!(width, 2);
        assert_eq!(launch(pairs, out, 4, None), 0);
        assert_eq!(launch(pairs, out, 3, None), INVALID_CLUSTER_SIZE);
        assert_eq!(launch(pairs, out, 4, Some([4, 1, 1])), INVALID_CLUSTER_SIZE);
        assert_eq!(cuCtxSynchronize(), 0);
        assert_eq!(cuMemcpyDtoH_v2(read.as_mut_ptr().cast(), out, 64), 0);
        assert_eq!(read, std::array::from_fn(|block| (block as u32 + 1) % 16));
    }
}

/// The attributes of a kernel node are set by calls of their own, and outlast its parameters.
#[test]
fn a_node_keeps_its_clusters_when_its_parameters_change() {
    driver::start();
    let any = driver::function(driver::load(PTX), c"any");
    // SAFETY: pointers of this function; the kernels write what is allocated.
    unsafe {
        let (mut out, mut graph, mut exec, mut node) = (0, null_mut(), null_mut(), null_mut());
        assert_eq!(cuMemAlloc_v2(&raw mut out, 48), 0);
        let mut outs = [out, out + 16, out + 32];
        let mut pointers = outs.each_mut().map(|out| (&raw mut *out).cast::<c_void>());
        let [first, second, third] = pointers.each_mut().map(|params| {
            let mut node = std::mem::zeroed::<CUDA_KERNEL_NODE_PARAMS>();
            (node.gridDimX, node.gridDimY, node.gridDimZ) = (4, 1, 1);
            (node.blockDimX, node.blockDimY, node.blockDimZ) = (1, 1, 1);
            (node.func, node.kernelParams) = (any.cast(), &raw mut *params);
            node
        });
        let ranks = |exec, address| {
            let mut read = [9u32; 4];
            assert_eq!(cuGraphLaunch(exec, null_mut()), 0);
            assert_eq!(cuMemcpyDtoH_v2(read.as_mut_ptr().cast(), address, 16), 0);
            read
        };
        assert_eq!(cuGraphCreate(&raw mut graph, 0), 0);
        assert_eq!(cuGraphAddKernelNode_v2(&raw mut node, graph, null(), 0, &raw const first), 0);
        let pairs = [2u32, 1, 1];
        assert_eq!(cuGraphKernelNodeSetAttribute(node, CLUSTER_DIMENSION, pairs.as_ptr().cast()), 0);
        assert_eq!(cuGraphKernelNodeSetParams_v2(node, &raw const second), 0);
        assert_eq!(cuGraphInstantiateWithFlags(&raw mut exec, graph, 0), 0);
        assert_eq!(ranks(exec, out + 16), [1, 0, 1, 0]);
        assert_eq!(cuGraphExecKernelNodeSetParams_v2(exec, node, &raw const third), 0);
        assert_eq!(ranks(exec, out + 32), [1, 0, 1, 0]);
        // A kernel does not become a fill: of one element of four bytes.
        let fill = [out, 0, 4 << 32, 1, 1];
        assert_eq!(cuGraphMemsetNodeSetParams(node, fill.as_ptr().cast()), INVALID_VALUE);
    }
}
