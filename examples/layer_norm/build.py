#!/usr/bin/env python3
"""Compile layer_norm.py and fixed.py to PTX, and make the arrays again.

No GPU is needed: `python3 -m venv triton && triton/bin/pip install triton==3.4.0 numpy && triton/bin/python examples/layer_norm/build.py`.
The expected array is computed by numpy in double precision.
"""

import importlib
import pathlib
import re

import numpy as np
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

HERE = pathlib.Path(__file__).resolve().parent
SIGNATURE = {"x_ptr": "*fp32", "weight_ptr": "*fp32", "y_ptr": "*fp32", "columns": "i32", "eps": "fp32", "BLOCK": "constexpr"}


def compile_to_ptx(name):
    function = importlib.import_module(name).layer_norm
    source = ASTSource(function, signature=SIGNATURE, constexprs={(5,): 128})
    compiled = triton.compile(source, target=GPUTarget("cuda", 80, 32), options={"num_warps": 1})
    # The debugger's sections are not of use here. `.file` names folders of whoever compiled.
    text = compiled.asm["ptx"].split("\t.section\t.debug")[0].replace(f"{HERE}/", "")
    text = re.sub(r'"[^"]*/(triton/[^"]*)"', r'"\1"', text)
    lines = [line.rstrip() for line in text[text.index(".version") :].splitlines()]
    first = f"// Compiled from {name}.py by Triton {triton.__version__} for sm_80: build.py\n"
    (HERE / f"{name}.ptx").write_text(first + "\n".join(lines).rstrip() + "\n")


def main():
    for name in ("layer_norm", "fixed"):
        compile_to_ptx(name)
    rng = np.random.default_rng(4)
    x = rng.standard_normal((4, 100))
    x[1] += 300
    x[2] = x[2] * 0.03 + 300
    x[3] *= 0.001
    x = x.astype(np.float32)
    weight = rng.uniform(0.5, 2, 100).astype(np.float32)
    wide = x.astype(np.float64)
    centred = wide - wide.mean(axis=1, keepdims=True)
    y = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5) * weight
    for stem, array in {"x": x, "weight": weight, "expected": y.astype(np.float32)}.items():
        np.save(HERE / f"{stem}.npy", array)


if __name__ == "__main__":
    main()
