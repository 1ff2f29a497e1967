"""What the references of all producers share: the list of cases, and arithmetic with the bits of a GPU."""

import json
import pathlib
import shutil
import sys
from fractions import Fraction

import numpy as np

FOLDER = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(FOLDER.parents[1] / "examples"))

from exact import exp2, fma, shuffle_down, shuffle_xor  # noqa: E402, F401
from made import made  # noqa: E402

CASES = []


def case(file, grid, block, args, outputs, entry=None, shared=0, note=None, ulps=0, lenient=False):
    """Adds one launch of a corpus file. Floats may be off by `ulps` units of the last place.

    Each of `args` is a numpy array (an input, copied to the device), a string (an argument as the command takes it,
    such as `f32[100]`), a number, or `Bf16(array)`. `outputs` maps the number of an argument to the array expected.
    """
    name = file.removesuffix(".ptx").replace("/", ".") + (f".{entry}" if entry else "")
    folder = FOLDER / "data" / name
    assert not folder.exists(), f"two cases are called {name}"
    folder.mkdir(parents=True)
    words = []
    for i, arg in enumerate(args):
        suffix = ""
        if isinstance(arg, Bf16):
            arg, suffix = arg.bits, ":bf16"
        if isinstance(arg, np.ndarray):
            np.save(folder / f"arg{i}.npy", np.ascontiguousarray(arg))
            words.append(f"@data/{name}/arg{i}.npy{suffix}")
        else:
            words.append(str(arg))
    expected = []
    for i, array in outputs.items():
        np.save(folder / f"expected{i}.npy", np.ascontiguousarray(array))
        expected.append({"arg": i, "expected": f"data/{name}/expected{i}.npy", "tolerance": ulps})
    entry_of = {"kernel": file, "grid": pad3(grid), "block": pad3(block), "shared": shared}
    if entry:
        entry_of["entry"] = entry
    if made(file, entry):
        entry_of["made"] = made(file, entry)
    if lenient:
        entry_of["lenient"] = True
    if note:
        entry_of["note"] = note
    CASES.append(entry_of | {"args": words, "outputs": expected})


def start():
    """Throws away what an earlier run made."""
    shutil.rmtree(FOLDER / "data", ignore_errors=True)


def finish():
    """Writes `cases.json`."""
    lines = ",\n".join("  " + json.dumps(c) for c in CASES)
    (FOLDER / "cases.json").write_text(f"[\n{lines}\n]\n")
    size = sum(f.stat().st_size for f in (FOLDER / "data").rglob("*.npy"))
    producers = sorted({c["kernel"].split("/")[0] for c in CASES})
    print(f"{len(CASES)} cases from {len(producers)} producers ({', '.join(producers)}), {size} bytes of arrays")


def pad3(dims):
    """A grid or block with all three dimensions."""
    dims = list(dims) if isinstance(dims, (tuple, list)) else [dims]
    return dims + [1] * (3 - len(dims))


class Bf16:
    """An array of the bits of bf16 numbers."""

    def __init__(self, bits):
        self.bits = bits.astype(np.uint16)


def array1(array, count, size):
    """A one-dimensional numba array as the seven parameters that it becomes."""
    return [0, 0, count, size, array, count, size]


def array2(array, rows, columns, size):
    """A two-dimensional numba array as the nine parameters that it becomes."""
    return [0, 0, rows * columns, size, array, rows, columns, columns * size, size]


def canonical(x):
    """The same floats with every NaN as arithmetic makes it: 0x7fff or 0x7fffffff."""
    bits = {2: np.uint16(0x7FFF), 4: np.uint32(0x7FFFFFFF)}[x.itemsize]
    return np.where(np.isnan(x), bits, x.view(bits.dtype)).astype(bits.dtype).view(x.dtype)


def fma64(a, b, c):
    """a * b + c in float64 with one rounding, of finite arguments and results that are not zero."""
    exact = [Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)) for x, y, z in zip(a, b, c, strict=True)]
    assert all(e != 0 for e in exact)
    return np.array([e.numerator / e.denominator for e in exact])


def widen(bits):
    """bf16 bits as float32."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def narrow(x):
    """float32 or float64 rounded to the nearest bf16, ties to even, as bits; NaN becomes 0x7fff.

    A float64 is first rounded to odd in float32, so that the second rounding is the only one that counts.
    """
    if x.dtype == np.float64:
        single = x.astype(np.float32)
        back = single.astype(np.float64)
        bits = single.view(np.uint32)
        away = np.nextafter(single, np.where(x > back, np.inf, -np.inf).astype(np.float32))
        x = np.where((back != x) & ((bits & 1) == 0), away, single)
    bits = x.view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(x), np.uint16(0x7FFF), rounded)


def signed(value, width):
    """The low `width` bits of an integer, read as two's complement."""
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def divide(a, b):
    """The quotient of two integers, rounded towards zero."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def product(a, b):
    """The product of two matrices of halves in f32: exact products, added in ascending k, each sum rounded.

    Bounded against the exact product by the classical (k - 1) u sum |a||b|, u = 2^-24.
    """
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for k in range(a.shape[1]):
        total += a[:, k : k + 1].astype(np.float32) * b[k : k + 1].astype(np.float32)
    wide = [m.astype(np.float64) for m in (a, b)]
    bound = (a.shape[1] - 1) * 2.0**-24 * (abs(wide[0]) @ abs(wide[1]))
    assert (abs(total - wide[0] @ wide[1]) <= bound).all()
    return total
