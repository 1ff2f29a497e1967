#!/usr/bin/env python3
"""Make the inputs and the expected outputs of the examples again, and `cases.json`, which says how to run them.

Needs numpy. Nothing here knows ptxvm: the expectations are what the CUDA C++ or PTX source says, with every operation
in the order and precision in which the compiled kernel does it, so that all of them must be met bit for bit.
"""

import json
import pathlib
import sys

import numpy as np

sys.dont_write_bytecode = True

from exact import exp2, fma, shuffle_down, shuffle_xor  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
CASES = []


def case(name, grid, block, args, arrays, output, expected):
    """Saves the arrays of one example and adds it to the list. An argument `@x.npy` means examples/<name>/x.npy."""
    for stem, array in arrays.items():
        np.save(HERE / name / f"{stem}.npy", array)
    np.save(HERE / name / "expected.npy", expected)
    CASES.append(
        {
            "kernel": f"{name}/{name}.ptx",
            "entry": name,
            "grid": grid,
            "block": block,
            "shared": 0,
            "args": [str(a).replace("@", f"@{name}/") for a in args],
            "outputs": [{"arg": output, "expected": f"{name}/expected.npy", "tolerance": 0}],
        }
    )


def f16x2_clamp():
    # Zeros, subnormals, the bounds -1 and 1 and their neighbours, infinities, NaNs (quiet, signalling, negative).
    bits = """0000 8000 0001 8001 03ff 83ff 0400 8400 3bff 3c00 3c01 bbff bc00 bc01 3800 b800
              7bff fbff 7c00 fc00 7e00 fe00 7c01 fd55 4248 c2a0"""
    x = np.array([int(h, 16) for h in bits.split()], np.uint16).view(np.float16)
    lo, hi = np.float16(-1), np.float16(1)
    y = np.where(x < lo, lo.view(np.uint16), x.view(np.uint16))
    y = np.where(x > hi, hi.view(np.uint16), y).astype(np.uint16).view(np.float16)
    pairs = len(x) // 2
    args = ["@x.npy", f"f16[{len(x)}]", "0xbc00bc00", "0x3c003c00", pairs]
    case("f16x2_clamp", [1, 1, 1], [32, 1, 1], args, {"x": x}, 1, y)


def bf16_threshold():
    rng = np.random.default_rng(1)
    n = 1001
    bits = rng.integers(0, 1 << 16, n).astype(np.uint16)
    # Half of them anything at all, half near the threshold 0.5 = 0x3f00, and the edges.
    bits[::2] = 0x3F00 + rng.integers(-3, 4, len(bits[::2]))
    bits[:8] = [0x3F00, 0x3F01, 0x3EFF, 0x7F80, 0xFF80, 0x7FC0, 0x7F81, 0x8000]
    value = (bits.astype(np.uint32) << 16).view(np.float32)
    y = np.where(value > np.float32(0.5), bits, 0).astype(np.uint16)
    args = ["@x.npy:bf16", f"bf16[{n}]", "0x3f00", n]
    case("bf16_threshold", [4, 1, 1], [256, 1, 1], args, {"x": bits}, 1, y)


def saxpy():
    rng = np.random.default_rng(2)
    n = 1000
    x = rng.standard_normal(n).astype(np.float32)
    y = rng.standard_normal(n).astype(np.float32)
    # Where the product cancels against the addend, a multiplication that is rounded first gives another result.
    y[:100] = -np.float32(2.7) * x[:100]
    args = [n, "2.7", "@x.npy", "@y.npy"]
    case("saxpy", [4, 1, 1], [256, 1, 1], args, {"x": x, "y": y}, 3, fma(np.float32(2.7), x, y))


def scale():
    x = np.arange(1, 5, dtype=np.float32)
    case("scale", [1, 1, 1], [4, 1, 1], ["@x.npy", "10"], {"x": x}, 0, x * np.float32(10))


def mandelbrot():
    width, height, limit = 161, 121, 256
    left, top, step = np.float32(-2.2), np.float32(1.2), np.float32(0.02)
    re = fma(np.arange(width).astype(np.float32), step, left)[None, :]
    im = (top - np.arange(height).astype(np.float32) * step)[:, None]
    x = np.zeros((height, width), np.float32)
    y = np.zeros((height, width), np.float32)
    counts = np.zeros((height, width), np.uint32)
    inside = np.ones((height, width), bool)
    for _ in range(limit):
        xx, yy = x * x, y * y
        inside &= ~(xx + yy > np.float32(4))
        counts += inside
        y = np.where(inside, fma(x + x, y, np.broadcast_to(im, x.shape)), y)
        x = np.where(inside, re + (xx - yy), x)
    args = [f"u32[{height}x{width}]", width, height, limit, "-2.2", "1.2", "0.02"]
    case("mandelbrot", [11, 16, 1], [16, 8, 1], args, {}, 0, counts)


def softmax():
    rng = np.random.default_rng(3)
    rows, columns, threads = 7, 301, 96
    x = (rng.standard_normal((rows, columns)) * 3).astype(np.float32)
    x[1] = 0
    x[2, 5] = -np.inf
    x[3] += np.float32(80)
    x[4, 300] = 300
    log2e = np.float32(1.44269504)
    greatest = x.max(axis=1, keepdims=True)
    e = exp2((x - greatest) * log2e)
    # Thread t adds up columns t, t + 96, ...; then the lanes of each warp, then the warps.
    sums = np.zeros((rows, threads), np.float32)
    for first in range(0, columns, threads):
        part = e[:, first : first + threads]
        sums[:, : part.shape[1]] += part
    sums = sums.reshape(rows, threads // 32, 32)
    for distance in (16, 8, 4, 2, 1):
        sums = sums + shuffle_xor(sums, distance)
    total = np.zeros((rows, 32), np.float32)
    total[:, : threads // 32] = sums[:, :, 0]
    for distance in (16, 8, 4, 2, 1):
        total = total + shuffle_xor(total, distance)
    y = e / total[:, :1]
    assert y.dtype == np.float32
    case("softmax", [rows, 1, 1], [threads, 1, 1], ["@x.npy", f"f32[{rows}x{columns}]", columns], {"x": x}, 1, y)


def matmul():
    rng = np.random.default_rng(4)
    m, n, k = 45, 51, 37
    a = rng.standard_normal((m, k)).astype(np.float32)
    b = rng.standard_normal((k, n)).astype(np.float32)
    c = np.zeros((m, n), np.float32)
    for i in range(k):
        c = fma(a[:, i : i + 1], b[i : i + 1, :], c)
    args = ["@a.npy", "@b.npy", f"f32[{m}x{n}]", m, n, k]
    case("matmul", [4, 3, 1], [16, 16, 1], args, {"a": a, "b": b}, 2, c)


def histogram():
    rng = np.random.default_rng(5)
    n = 10007
    data = np.clip(rng.normal(100, 30, n), 0, 255).astype(np.uint8)
    bins = np.bincount(data, minlength=256).astype(np.uint32)
    case("histogram", [4, 1, 1], [200, 1, 1], ["@data.npy", n, "u32[256]"], {"data": data}, 2, bins)


def mixed_dot():
    rng = np.random.default_rng(6)
    n, threads = 2000, 128
    a = rng.standard_normal(n).astype(np.float16)
    b = rng.standard_normal(n).astype(np.float16)
    result = np.zeros(1, np.float32)
    # Two blocks: 0 + s0 + s1 is the same in either order.
    for first in (0, 1024):
        sums = np.zeros(threads, np.float32)
        for i in range(first, min(first + 1024, n), threads):
            count = min(threads, n - i)
            sums[:count] = fma(a[i : i + count], b[i : i + count], sums[:count])
        sums = sums.reshape(4, 32)
        for distance in (16, 8, 4, 2, 1):
            sums = sums + shuffle_down(sums, distance)
        total = sums[0, 0]
        for warp in (1, 2, 3):
            total = total + sums[warp, 0]
        result += total
    case("mixed_dot", [2, 1, 1], [128, 1, 1], ["@a.npy", "@b.npy", "f32[1]", n], {"a": a, "b": b}, 2, result)


def block_sum():
    rng = np.random.default_rng(7)
    n, threads = 5000, 160
    blocks = -(-n // (8 * threads))
    x = rng.standard_normal(n).astype(np.float32)
    padded = np.zeros(blocks * 8 * threads, np.float32)
    padded[:n] = x
    sums = np.zeros((blocks, threads), np.float32)
    for part in padded.reshape(blocks, 8, threads).transpose(1, 0, 2):
        sums = sums + part
    sums = sums.reshape(blocks, threads // 32, 32)
    for distance in (16, 8, 4, 2, 1):
        sums = sums + shuffle_down(sums, distance)
    total = np.zeros((blocks, 32), np.float32)
    total[:, : threads // 32] = sums[:, :, 0]
    for distance in (16, 8, 4, 2, 1):
        total = total + shuffle_down(total, distance)
    case("block_sum", [blocks, 1, 1], [threads, 1, 1], ["@x.npy", n, f"f32[{blocks}]"], {"x": x}, 2, total[:, 0].copy())


def main():
    elementwise = (f16x2_clamp, bf16_threshold, saxpy, scale, mandelbrot)
    for example in (*elementwise, softmax, matmul, histogram, mixed_dot, block_sum):
        example()
    lines = ",\n".join("  " + json.dumps(c) for c in CASES)
    (HERE / "cases.json").write_text(f"[\n{lines}\n]\n")
    print(f"{len(CASES)} examples")


if __name__ == "__main__":
    main()
