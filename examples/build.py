#!/usr/bin/env python3
"""Compile the examples that are CUDA C++ to PTX again.

Any machine with nvcc will do, no GPU is needed. Without a CUDA installation:

    python3 -m venv cuda && cuda/bin/pip install nvidia-cuda-nvcc==13.5.37 nvidia-nvvm==13.5.37 \\
        nvidia-cuda-crt==13.5.37 nvidia-cuda-runtime==13.5.37
    NVCC=$(find cuda -name nvcc -type f) python3 examples/build.py

With --check nothing is written, and a difference is an error. The other examples (f16x2_clamp, bf16_threshold,
mixed_dot) are written in PTX by hand.
"""

import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent

# The oldest architecture of the compiler, or the one that people have.
ARCHITECTURES = {
    "block_sum": "compute_80",
    "histogram": "compute_75",
    "mandelbrot": "compute_80",
    "matmul": "compute_80",
    "saxpy": "compute_75",
    "softmax": "compute_90",
}


def compile_to_ptx(name):
    """The PTX of examples/<name>/<name>.cu, with a first line that says where it comes from."""
    nvcc = os.environ.get("NVCC", "nvcc")
    folder = HERE / name
    arch = ARCHITECTURES[name]
    command = [nvcc, "--ptx", f"--gpu-architecture={arch}", f"{name}.cu", "--output-file", "-"]
    ptx = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout
    version = subprocess.run([nvcc, "--version"], check=True, capture_output=True, text=True).stdout
    release = re.search(r"V([\d.]+)", version).group(1)
    body = ptx[ptx.index(".version") :]
    body = "\n".join(line.rstrip() for line in body.splitlines()).rstrip("\n")
    return f"// Compiled from {name}.cu by nvcc {release}: nvcc --ptx --gpu-architecture={arch} {name}.cu\n{body}\n"


def main():
    check = sys.argv[1:] == ["--check"]
    stale = []
    for name in sorted(ARCHITECTURES):
        path = HERE / name / f"{name}.ptx"
        ptx = compile_to_ptx(name)
        if not path.exists() or path.read_text() != ptx:
            stale.append(path.name)
            if not check:
                path.write_text(ptx)
    print(f"{len(ARCHITECTURES)} kernels, {len(stale)} {'out of date' if check else 'written'}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
