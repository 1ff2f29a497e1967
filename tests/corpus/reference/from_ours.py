"""Kernels of `tests/corpus/sources` that no other compiler's corpus has: what they compute, in exact integers or floats that are integers."""

import numpy as np
from common import case, signed

NVCC = "nvcc-13.5"


def cases():
    rng = np.random.default_rng(800)
    atomics(rng)
    arithmetic(rng)
    own_memory(rng)
    tiles(rng)
    clusters(rng)
    groups(rng)


def folded(function, values, start):
    """The result of an operation on all values, one after the other."""
    for value in values:
        start = function(start, int(value))
    return start


def atomics(rng):
    # Every operation on integers; `inc` and `dec` count to 99.
    n = 333
    x = rng.integers(-(2**31), 2**31, n)
    narrow, wide = np.array([0, 0, 5, -5, -1, 0, 7, 2**31 - 1, 1, 0, 0]), np.array([3, 0, 0, -1, 0, 9])
    unsigned = x % 2**32
    total = int(x.sum())
    out = [signed(total, 32), signed(-total, 32), min(5, x.min()), max(-5, x.max())]
    out += [folded(lambda a, b: a & b, x, -1), folded(lambda a, b: a | b, x, 0), folded(lambda a, b: a ^ b, x, 7)]
    out += [min(2**31 - 1, unsigned.min()), signed(max(1, int(unsigned.max())), 32), n % 100, -n % 100]
    long = [3 + total, min(0, x.min()), max(0, x.max())]
    long += [folded(lambda a, b: a & b, x, -1), folded(lambda a, b: a | b, x, 0), folded(lambda a, b: a ^ b, x, 9)]
    args = [x.astype(np.int32), narrow.astype(np.int32), wide, n]
    outputs = {1: np.array(out, np.int32), 2: np.array(long)}
    for target in ("sm75", "sm90"):
        case(f"{NVCC}/atomics_{target}.ptx", 3, 128, args, outputs, entry="every_integer")

    # Each thread takes a number and leaves it, in whatever order.
    taken = np.arange(1, 513, dtype=np.uint32)
    case(f"{NVCC}/atomics_sm80.ptx", 1, 512, ["u32[3]", "u32[512]"], {0: np.full(3, 512, np.uint32), 1: taken}, entry="tickets")


def arithmetic(rng):
    # Sums of 128 bits, times 3.
    words = rng.integers(0, 2**64, (2, 64, 2), dtype=np.uint64)
    words[:, :8] = 2**64 - 1
    sums = [int(a[0]) + int(b[0]) + ((int(a[1]) + int(b[1])) << 64) for a, b in zip(*words, strict=True)]
    out = [word for total in sums for word in (total * 3 % 2**64, total * 3 % 2**128 >> 64)]
    args = [words[0].reshape(-1), words[1].reshape(-1), "u64[128]"]
    case(f"{NVCC}/simd_sm75.ptx", 2, 32, args, {2: np.array(out, np.uint64)}, entry="wide_product")


def own_memory(rng):
    # Counts in an array of the thread's own, and the median of its bytes.
    per, threads = 41, 96
    x = rng.integers(0, 256, (threads, per)).astype(np.uint8)
    out = []
    for i, row in enumerate(x):
        counts, total = np.bincount(row % 16, minlength=16), 0
        for k in range(16):
            total = total * 3 + int(counts[(k * 5 + i) % 16])
        out += [signed(total, 32), int(np.sort(row)[per // 2])]
    args = [x.reshape(-1), f"i32[{2 * threads}]", per]
    case(f"{NVCC}/local_arrays_sm75.ptx", 3, 32, args, {1: np.array(out, np.int32)})

    # The same in memory that the kernel allocates: the index k * 7 goes once through a length that 7 does not divide.
    length, total = 30, 0
    own = {k * 7 % length: k for k in range(length)}
    for k in range(length):
        total = total * 5 + own[k]
    case(f"{NVCC}/memory_sm80.ptx", 2, 32, ["i32[64]", length], {0: np.full(64, signed(total, 32), np.int32)}, entry="heap")

    # Rust sorts eight words, and adds them up in their order.
    words = rng.integers(0, 2**32, (64, 8), dtype=np.uint32)
    args = [words.reshape(-1), "f64[64]"]
    outputs = {0: np.sort(words, axis=1).reshape(-1), 1: words.sum(axis=1, dtype=np.uint64).astype(np.float64)}
    case("rustc-1.97/kernels_sm90.ptx", 2, 32, args, outputs, entry="sorted")

    # numba sorts eight elements, too, by insertion.
    words = rng.integers(-(2**31), 2**31, 512).astype(np.int32)
    args = [0, 0, 512, 4, words, 512, 4, 0, 0, 512, 4, "i32[512]", 512, 4]
    case("numba-cuda-0.30/local_array_sm90.ptx", 2, 32, args, {11: np.sort(words.reshape(64, 8), axis=1).reshape(-1)})


def tiles(rng):
    # The sum of tiles that are copied in turns; behind the first one the last lane of a warp copies half, and zeros.
    x = rng.integers(-50, 51, (5, 128, 4)).astype(np.float32)
    seen = x.copy()
    seen[1:, 31::32, 2:] = 0
    out = seen.sum(axis=(0, 2))[::-1].copy()
    for target in ("sm80", "sm90"):
        case(f"{NVCC}/async_copy_{target}.ptx", 1, 128, [x, "f32[128]", 5], {1: out})

    # Four tiles of 8 x 8, each transposed: a thread gets two neighbours in a row.
    x = rng.integers(0, 2**16, (4, 8, 8)).astype(np.uint16)
    out = np.ascontiguousarray(x.transpose(0, 2, 1)).reshape(-1).view(np.uint32)
    case(f"{NVCC}/mma_sm80.ptx", 1, 32, [x, "u32[128]"], {1: out}, entry="transposed")


def clusters(rng):
    x = rng.integers(-1000, 1000, (2, 4, 128)).astype(np.int32)
    out = x.sum(axis=1, keepdims=True, dtype=np.int32) + np.arange(4, dtype=np.int32)[None, :, None]
    case(f"{NVCC}/clusters_sm90.ptx", 8, 128, [x, "i32[1024]"], {1: out.reshape(-1)}, entry="clusters")

    x = rng.standard_normal((3, 256)).astype(np.float32)
    case(f"{NVCC}/clusters_sm90.ptx", 3, 256, [x, "f32[768]"], {1: 2 * x.reshape(-1)}, entry="bulk")


def groups(rng):
    # Tiles of eight threads: their sum, the greatest so far, a vote, who has the same remainder; threads of a warp that agree.
    x = rng.integers(0, 100, 128).astype(np.int32)
    tile = x.reshape(-1, 8)
    out = tile.sum(axis=1, keepdims=True) + np.maximum.accumulate(tile, axis=1)
    out += tile[:, np.arange(8) ^ 3] + ((tile > 0) << np.arange(8)).sum(axis=1, keepdims=True)
    out += (tile[:, :, None] % 4 == tile[:, None, :] % 4).sum(axis=2)
    warp, agree = x.reshape(-1, 32), x.reshape(-1, 32) % 3 == 0
    first = np.take_along_axis(warp, agree.argmax(axis=1)[:, None], axis=1)
    together = agree.sum(axis=1, keepdims=True) * 100 + np.cumsum(agree, axis=1) - 1 + first
    out = out.reshape(-1) + np.where(agree, together, 0).reshape(-1)
    case(f"{NVCC}/groups_sm75.ptx", 2, 64, [x, "i32[128]"], {1: out.astype(np.int32)}, entry="groups")
