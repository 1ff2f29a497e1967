"""Compiles the kernels of this folder without a GPU: `python3 build.py OUT`, with numba-cuda and NVIDIA's packages for CUDA 12 installed."""

import pathlib
import sys
import warnings

import kernels
import numpy as np
from numba import cuda, from_dtype, types

TYPES = {name: getattr(types, full) for name, full in {
    "u8": "uint8", "i16": "int16", "i32": "int32", "u32": "uint32", "i64": "int64", "f16": "float16", "f32": "float32",
    "f64": "float64", "c64": "complex64",
}.items()}
POINT = from_dtype(np.dtype([("x", np.float32), ("kind", np.int16), ("y", np.float64)], align=True))

# The types of the parameters: `f32[]` is an array, `u8[,]` one of two dimensions, `?` the type that stands in the name.
KERNELS = {
    "blur_2d": "u8[,] u8[,]",
    "matmul_shared": "f32[,] f32[,] f32[,]",
    "reduce_shfl": "?[] ?[]",
    "reduce_shared": "f64[] f64[]",
    "shfl_mix": "i32[] i64[]",
    "collatz": "i64[] i64[]",
    "complex_mul": "c64[] c64[]",
    "selp": "?[] ?[]",
    "saxpy": "? ?[] ?[] ?[]",
    "int_ops": "?[] ?[] ?[]",
    "mathematics": "?[] ?[]",
    "more_mathematics": "?[] ?[]",
    "fma_cbrt": "f64[] f64[]",
    "isnan_ldexp": "f64[] i32[] f64[]",
    "compare": "?[] ?[] i32[]",
    "bits": "?[] i64[]",
    "histogram": "i32[] i32[]",
    "atomics_mix": "?[] ?[] f64[]",
    "local_array": "i32[] i32[]",
    "const_array": "f32[] f32[]",
    "print_k": "?[]",
    "votes": "i32[] i64[]",
    "fences": "i32[] i32[] i32[]",
    "records": "point[] f32",
}

# What is compiled, by target: kernels, with a type, and options after it.
WANTED = {
    (7, 5): """blur_2d matmul_shared reduce_shfl_f32 reduce_shared collatz saxpy_f32 mathematics_f64 isnan_ldexp compare_f64 bits_u32
        histogram atomics_mix_i32 local_array votes fences""",
    (8, 0): """reduce_shfl_f32 reduce_shfl_i32 reduce_shared shfl_mix collatz complex_mul selp_f32 saxpy_f32 saxpy_f64 saxpy_i32 int_ops_i32
        mathematics_f32 mathematics_f64 more_mathematics_f32 more_mathematics_f64 fma_cbrt compare_f64 cast_f32_i32 cast_i64_f32
        bits_i64 atomics_mix_i64 const_array print_k_f64 records saxpy_f32_fast saxpy_f32_lines""",
    (9, 0): """blur_2d matmul_shared shfl_mix complex_mul selp_f64 saxpy_f64 saxpy_i32 int_ops_u8 int_ops_i64 mathematics_f64
        mathematics_f32_fast more_mathematics_f64 fma_cbrt isnan_ldexp compare_f32 cast_f64_u8 cast_f16_f32 histogram local_array print_k_i32
        votes records""",
}


def type_of(word, own):
    """The type that a word of `KERNELS` stands for."""
    word = word.replace("?", own)
    if "[" not in word:
        return TYPES[word]
    name, dimensions = word.rstrip("]").split("[")
    element = POINT if name == "point" else TYPES[name]
    return types.Array(element, 1 + dimensions.count(","), "A" if name == "point" else "C")


def compiled(name, capability):
    """The PTX of a kernel whose name may end in its types and an option."""
    kernel = next(kernel for kernel in sorted([*KERNELS, "cast"], key=len, reverse=True) if name.startswith(kernel))
    words = name.removeprefix(kernel).strip("_").split("_")
    options = [word for word in words if word in ("fast", "lines")]
    if kernel == "cast":
        signature = [types.Array(TYPES[word], 1, "C") for word in words[:2]]
    else:
        signature = [type_of(word, words[0]) for word in KERNELS[kernel].split()]
    flags = {"fastmath": True} if options == ["fast"] else {"lineinfo": True} if options == ["lines"] else {}
    ptx, _ = cuda.compile_ptx(getattr(kernels, kernel), types.void(*signature), cc=capability, **flags)
    return ptx


def main(out):
    warnings.simplefilter("ignore")
    for capability, names in WANTED.items():
        for name in names.split():
            (out / f"{name}_sm{capability[0]}{capability[1]}.ptx").write_text(compiled(name, capability))


main(pathlib.Path(sys.argv[1]))
