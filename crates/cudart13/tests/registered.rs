//! A program that registers kernels as nvcc's do, on `libcudart.so.13`.

#[path = "../../libcudart/tests/c/mod.rs"]
mod c;

#[test]
fn a_registered_kernel_runs() {
    c::works(13);
}
