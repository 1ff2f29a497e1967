//! `libcudart.so.13`: the symbols of the CUDA runtime as CUDA 13 has them. What they do stands in `ptxvm_libcudart`.

include!(concat!(env!("OUT_DIR"), "/exports.rs"));
