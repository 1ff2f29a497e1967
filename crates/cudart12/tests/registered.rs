//! A program that registers kernels as nvcc's do, on `libcudart.so.12`.

// The driver is found beside the runtime.
use ptxvm_libcuda as _;

#[test]
fn a_registered_kernel_runs() {
    test_utils::registered::works(12);
}
