"""Compiles the kernels of this folder without a GPU: `python3 build.py OUT`, with Triton installed."""

import pathlib
import sys

import kernels
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

# A kernel, the types of its parameters, the values of what is constant. A word without `*` is the type of a number; `?` is the
# type that stands in the name.
ELEMENTS = {"N": 1024}
TILES = {"BM": 64, "BN": 64, "BK": 32}
STRIDES = ["i32"] * 9
KERNELS = {
    "add": (["*?", "*?", "*?", "i32"], ELEMENTS),
    "clampwhere": (["*?", "*?", "*?", "i32"], ELEMENTS),
    "relu": (["*?", "*?", "i32"], ELEMENTS),
    "gelu": (["*?", "*?", "i32"], ELEMENTS),
    "int": (["*?", "*?", "*?", "i32"], ELEMENTS),
    "cmp": (["*?", "*?", "*i32", "i32"], ELEMENTS),
    "fma": (["*?", "*?", "*?", "*?", "i32"], ELEMENTS),
    "math": (["*?", "*?", "i32"], {"N": 256}),
    "libdev": (["*?", "*?", "i32"], {"N": 256}),
    "dropout": (["*?", "*?", "i32", "i32"], ELEMENTS),
    "atomics": (["*?", "*?", "i32"], ELEMENTS),
    "sum": (["*?", "*?", "i32"], ELEMENTS),
    "sort": (["*?", "*?"], {"N": 128}),
    "argmax": (["*?", "*i32", "i32"], ELEMENTS),
    "cumsum": (["*?", "*?", "i32"], {"N": 512}),
    "softmax": (["*?", "*?", "i32"], ELEMENTS),
    "layernorm": (["*?", "*?", "*?", "i32", "fp32"], ELEMENTS),
    "shapes": (["*?", "*?", "*?"], {"N": 128}),
    "attn": (["*?", "*?", "*?", "*?", "fp32", "i32"], {"D": 64, "B": 64}),
    "printed": (["*?"], {"N": 128}),
}
TYPES = {"f16": "fp16", "bf16": "bf16", "f32": "fp32", "f64": "fp64"}

# What is compiled: names of files, without `_sm80`, by target.
WANTED = {
    80: """add_f16 add_bf16 clampwhere_f16 clampwhere_f32 relu_f16 relu_f32 gelu_f16 int_i32 int_i64 cmp_i32 cmp_f32 cmp_f64 fma_bf16
        fma_f32 math_f32 math_f64 libdev_f32 dropout_f32 atomics_i32 sum_f16 sum_f32 sum_i32 sort_f32 sort_i16 argmax_f32 cumsum_f32 softmax_f16
        layernorm_f16 shapes_i32 printed_i32 attn_f16 matmul_f16 matmul_i8 matmul_f32
        cast_f32_f16 cast_f16_f32 cast_f32_bf16 cast_f16_i8 cast_i64_f64""",
    90: """add_f32 clampwhere_f32 relu_f32 relu_bf16 gelu_bf16 int_i32 cmp_f16 fma_f16 math_f64 dropout_f32 sum_f32 sum_f16 sort_f32 argmax_f32
        softmax_f32 layernorm_f16 attn_f16 attn_bf16 matmul_f16 matmul_bf16
        cast_f32_f16 cast_f32_bf16 cast_bf16_f32 cast_f16_i8 cast_i64_f64 cast_f64_f16""",
    100: """add_bf16 clampwhere_bf16 relu_f16 relu_f32 relu_bf16 int_i32 cmp_i32 cmp_f64 fma_f16 math_f32 libdev_f32 atomics_i32 sum_i32 sum_f32
        sort_f32 argmax_f16 cumsum_f32 softmax_f32 matmul_f16 cast_f32_i32 cast_f32_f16 cast_f16_f32 cast_f16_i8 cast_i32_f32 cast_f64_f32""",
}


def compiled(name, target):
    """The PTX of a kernel whose name ends in its types: `cast_f32_f16`."""
    kernel, first, *more = name.split("_")
    function = getattr(kernels, kernel)
    type_of = lambda word: TYPES.get(word, word)  # noqa: E731
    if kernel == "matmul":
        pointers = [f"*{type_of(first)}"] * 2 + ["*i32" if first == "i8" else f"*{type_of(first)}"]
        words, constants = [*pointers, *STRIDES], TILES
    elif kernel == "cast":
        words, constants = [f"*{type_of(first)}", f"*{type_of(more[0])}", "i32"], ELEMENTS
    else:
        words, constants = KERNELS[kernel]
        words = [word.replace("?", type_of(first)) for word in words]
    names = function.arg_names
    signature = dict(zip(names, words)) | {parameter: "constexpr" for parameter in constants}
    source = ASTSource(function, signature, {(names.index(parameter),): value for parameter, value in constants.items()})
    options = {"debug": True} if kernel == "printed" else {}
    result = triton.compile(source, target=GPUTarget("cuda", target, 32), options=options)
    return result.asm["ptx"], result.metadata.shared


def main(out):
    for target, names in WANTED.items():
        for name in names.split():
            ptx, shared = compiled(name, target)
            # Lines of the source, and the debugging data behind the code, name folders of this machine.
            text = ptx.split("\t.section\t.debug")[0]
            lines = [line.rstrip() for line in text.splitlines() if not line.lstrip().startswith((".loc\t", ".file\t"))]
            head = f"// {shared} bytes of dynamic shared memory\n"
            (out / f"{name}_sm{target}.ptx").write_text(head + "\n".join(lines).rstrip() + "\n")


main(pathlib.Path(sys.argv[1]))
