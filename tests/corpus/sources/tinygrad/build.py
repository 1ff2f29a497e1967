"""Has tinygrad render operations as PTX, without a GPU: `python3 build.py OUT`, with tinygrad installed.

A file holds one kernel, whose loops its name tells: `E_2_32_4`. Operations of several kernels have several files, with a number.
"""

import os
import pathlib
import sys

os.environ["DEV"] = "NULL"

from tinygrad import Tensor, dtypes  # noqa: E402
from tinygrad.codegen import to_program  # noqa: E402
from tinygrad.helpers import Target  # noqa: E402
from tinygrad.renderer.ptx import PTXRenderer  # noqa: E402
from tinygrad.uop.ops import Ops  # noqa: E402

TYPES = {
    "i8": dtypes.int8,
    "u8": dtypes.uint8,
    "i16": dtypes.int16,
    "i32": dtypes.int32,
    "i64": dtypes.int64,
    "u16": dtypes.uint16,
    "u32": dtypes.uint32,
    "u64": dtypes.uint64,
    "f16": dtypes.half,
    "bf16": dtypes.bfloat16,
    "f32": dtypes.float,
    "f64": dtypes.double,
    "bool": dtypes.bool,
}

# Operations on arrays of 256 elements; the number of parameters says how many arrays.
ELEMENTWISE = {
    "bits": lambda a, b, c: (a ^ b) & (c | 3),
    "bool_ops": lambda a, b, c: ((a > 0) & (b < 1)) | (c == 2),
    "cmp_ge": lambda a, b: a >= b,
    "cmp_lt": lambda a, b: a < b,
    "cmp_ne": lambda a, b: a != b,
    "eq": lambda a, b: a == b,
    "mul": lambda a, b: a * b,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "div": lambda a, b: a / b,
    "idiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "maximum": lambda a, b: a.maximum(b),
    "where": lambda a, b: (a < b).where(a, b + 1),
    "shl": lambda a: a << 3,
    "shr": lambda a: a >> 3,
    "relu": lambda a: a.relu(),
    "exp": lambda a: a.exp(),
    "log": lambda a: a.log(),
    "sin": lambda a: a.sin(),
    "sqrt": lambda a: a.sqrt(),
    "round": lambda a: a.round(),
    "trunc": lambda a: a.trunc(),
    "gelu": lambda a: a.gelu(),
    "sigmoid": lambda a: a.sigmoid(),
}

# Operations on arrays of a shape of their own.
SHAPED = {
    "pad": lambda t: Tensor.empty(10, 10, dtype=t).pad(((1, 1), (2, 2))).contiguous(),
    "cat": lambda t: Tensor.empty(10, dtype=t).cat(Tensor.empty(12, dtype=t)),
    "sum": lambda t: Tensor.empty(16, 64, dtype=t).sum(),
    "max": lambda t: Tensor.empty(16, 64, dtype=t).max(axis=1),
    "any": lambda t: Tensor.empty(16, 64, dtype=t).any(axis=1),
    "cumsum": lambda t: Tensor.empty(4, 40, dtype=t).cumsum(axis=1),
    "transpose": lambda t: (Tensor.empty(10, 10, dtype=t).T + 1).contiguous(),
    "matmul": lambda t: Tensor.empty(16, 16, dtype=t) @ Tensor.empty(16, 16, dtype=t),
    "large_matmul": lambda t: Tensor.empty(256, 256, dtype=t) @ Tensor.empty(256, 256, dtype=t),
    "attention": lambda t: Tensor.empty(2, 16, 32, dtype=t).scaled_dot_product_attention(*Tensor.empty(2, 2, 16, 32, dtype=t)),
    "softmax": lambda t: Tensor.empty(16, 64, dtype=t).softmax(),
    "layernorm": lambda t: Tensor.empty(16, 64, dtype=t).layernorm(),
    "conv": lambda t: Tensor.empty(1, 3, 12, 12, dtype=t).conv2d(Tensor.empty(4, 3, 3, 3, dtype=t)),
    "gather": lambda t: Tensor.empty(20, 8, dtype=t)[Tensor.empty(5, dtype=dtypes.int32)],
    "sort": lambda t: Tensor.empty(16, dtype=t).sort()[0],
}

# What is rendered, by target: operations with the types of their arrays.
WANTED = {
    "sm_90": {
        "bits": "i16 u32",
        "bool_ops": "f32",
        "cmp_ge": "f16 f32",
        "cmp_lt": "f16 bf16 i64",
        "cmp_ne": "f32 f64 bf16",
        "eq": "u32 i8",
        "mul": "i16 u64 u8",
        "add": "f16 bf16 i32",
        "sub": "u16 f64",
        "div": "f32 f64 f16",
        "idiv": "i32 u64",
        "mod": "i32 u16",
        "maximum": "bf16 f32 i8",
        "where": "f64 u32",
        "shl": "i16 i32",
        "shr": "i32 u64",
        "relu": "f32 f16",
        "exp": "f32 f16",
        "log": "f32",
        "sin": "f64 f32",
        "sqrt": "f16 f64 bf16",
        "round": "f16 bf16",
        "trunc": "bf16",
        "gelu": "f32",
        "sigmoid": "f16",
        "cast": "u64_u8 f16_f64 i16_f16 i16_i32 i32_i64 i32_u8 u32_f32 u32_f16 u64_i16 f64_f32 bf16_u64 bool_bf16 i32_bf16 f32_i8 f64_u32",
        "pad": "f32",
        "cat": "f32",
        "sum": "f16 f64 i32",
        "max": "i32 i64 f32",
        "any": "bool",
        "cumsum": "i32",
        "transpose": "f32",
        "matmul": "f32 i64 bf16",
        "large_matmul": "f16 f32",
        "attention": "f32 f16",
        "softmax": "f32",
        "layernorm": "f64 f16",
        "conv": "f32",
        "gather": "f32",
        "sort": "f32",
    },
    "sm_75": {
        "shl": "i16",
        "shr": "i32",
        "sin": "f64",
        "trunc": "bf16",
        "cast": "i16_f16 u32_f32 u64_i16",
        "maximum": "f16",
        "exp": "f16",
        "large_matmul": "f16",
    },
    "sm_35": {"shl": "i16", "shr": "i32", "sin": "f64", "cast": "u32_f32", "max": "i32", "matmul": "f32"},
}


def result_of(operation, types):
    """The array that an operation makes."""
    if operation == "cast":
        source, destination = (TYPES[name] for name in types.split("_"))
        return Tensor.empty(256, dtype=source).cast(destination)
    if operation in SHAPED:
        return SHAPED[operation](TYPES[types])
    function = ELEMENTWISE[operation]
    return function(*(Tensor.empty(256, dtype=TYPES[types]) for _ in range(function.__code__.co_argcount)))


def kernels(array, renderer):
    """The PTX of each kernel that is launched for an array."""
    for call in array.schedule_linear().src:
        if call.src[0].op is Ops.SINK:
            program = to_program(call.src[0], renderer)
            yield next(part.arg for part in program.src if part.op is Ops.BINARY).decode()


def main(out):
    for target, operations in WANTED.items():
        # The renderer for CUDA takes PTX for the end of its work; others would assemble it.
        renderer = PTXRenderer(Target(device="CUDA", arch=target))
        for operation, names in operations.items():
            for types in names.split():
                texts = list(dict.fromkeys(kernels(result_of(operation, types), renderer)))
                assert texts, f"{operation}_{types} takes no kernel"
                for number, text in enumerate(texts):
                    words = [operation, types, *([str(number)] if len(texts) > 1 else []), target.replace("_", "")]
                    (out / f"{'_'.join(words)}.ptx").write_text(text + "\n")


main(pathlib.Path(sys.argv[1]))
