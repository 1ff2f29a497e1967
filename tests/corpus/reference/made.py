"""Which kernels of `cargo xtask corpus` have the parameters, and do the work, of the kernels that the cases name first."""

# Names of folders that take the place of others.
FOLDERS = {
    "nvcc13": "nvcc-13.5",
    "nvrtc12": "nvrtc-12.9",
    "triton34": "triton-3.4",
    "triton39": "triton-3.9",
    "numbacuda030": "numba-cuda-0.30",
    "numbaclassic060": "numba-cuda-0.30",
    "tinygrad014": "tinygrad-0.14",
    "tinygrad014_sm35": "tinygrad-0.14",
    "tinygrad014_sm75": "tinygrad-0.14",
}

# Files whose names are not made by rule; nothing where there is no such kernel.
FILES = {
    "clang22/m_O1_sm100 conv": "clang-22/warps_O1_sm100",
    "clang22/m_O1_sm100 mixed": "clang-22/halves_O1_sm100",
    "clang22/m_O1_sm100 shfl": "clang-22/warps_O1_sm100",
    "clang22/m_O3_sm100 mixed": "clang-22/halves_O3_sm100",
    "nvcc13/fp64_cmp_sm80": "nvcc-13.5/fp64_sm80",
    "nvrtc12/reduce_sm53": "nvrtc-12.9/reduce_sm60",
    "numbacuda030/matmul_shared_f32_sm90": "numba-cuda-0.30/matmul_shared_sm90",
    "numbacuda030/reduce_shared_f64_sm80": "numba-cuda-0.30/reduce_shared_sm80",
    "numbaclassic060/math_f32_fast_sm53": None,
    "numbaclassic060/math_f32_fast_sm90": None,
    "numbaclassic060/math_f64_sm90": None,
    "numbaclassic060/selp_f64_sm53": "numba-cuda-0.30/selp_f64_sm90",
    "numbaclassic060/fma_cbrt_sm90": None,
    "numbaclassic060/isnan_ldexp_sm90": None,
    "rustc/k_O3_sm70": "rustc-1.97/kernels_sm70",
    "tinygrad014/attention_0": "tinygrad-0.14/attention_f32_0_sm90",
    "tinygrad014/bool_ops": "tinygrad-0.14/bool_ops_f32_sm90",
    "tinygrad014/cat": "tinygrad-0.14/cat_f32_sm90",
    "tinygrad014/pad": "tinygrad-0.14/pad_f32_sm90",
    "tinygrad014/sort_8": "tinygrad-0.14/sort_f32_1_sm90",
}


def made(file, entry):
    """The kernel of ours for a file of the cases, or nothing."""
    name = file.removesuffix(".ptx")
    for key in (f"{name} {entry}", name):
        if key in FILES:
            return FILES[key] and f"{FILES[key]}.ptx"
    folder, name = name.split("/")
    if folder not in FOLDERS:
        return None
    if folder.startswith("tinygrad"):
        name += f"_{(folder.split('_') + ['sm90'])[1]}"
    if folder.startswith("numba"):
        name = name.replace("math_", "mathematics_").replace("sm53", "sm75")
    return f"{FOLDERS[folder]}/{name}.ptx"
