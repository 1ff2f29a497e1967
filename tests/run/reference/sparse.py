"""Writes the kernels of sparse and of block-scaled `mma` beside this folder, with the results that must come out.

    python3 tests/run/reference/sparse.py

A is made as a whole matrix, zeros included; what a thread holds of it, and what the metadata say, is taken from that matrix as the
manual's sections "Sparse matrix storage", "Matrix Fragments for sparse mma" and "Block Scaling for mma.sync" describe,
case by case. Where the manual has only a figure, the layouts are those of CUTLASS (`ELayout` in mma_traits_sm90_gmma_sparse.hpp
and mma_traits_sm120_sparse.hpp).
"""

from fractions import Fraction

import numpy as np

import matrix
from matrix import A, B, BITS, C, fragment_kernel, g, small_float, t, words

BITS |= dict(e3m2=8, e2m3=8, e2m1=8)
FORMATS = dict(e4m3=(4, 3), e5m2=(5, 2), e3m2=(3, 2), e2m3=(2, 3), e2m1=(2, 1))
SMALL = {ty: small_float(*bits) for ty, bits in FORMATS.items()}
encode_integer = matrix.encode


def encode(ty, value):
    if ty == "e2m1":
        # The middle of a byte.
        return SMALL[ty][value] << 2
    if ty == "packed":
        return SMALL["e2m1"][value]
    if ty == "f32":
        return int(np.float32(value).view(np.uint32))
    return SMALL[ty][value] if ty in SMALL else encode_integer(ty, value)


matrix.encode = encode
BITS["packed"] = 4

# Row of stored element i of A, and the first of the columns among which it stands, by the bits of an element and k.
SPARSE_A = {
    (16, 16): lambda l, i: (g(l) if i < 2 else g(l) + 8, t(l) * 4),
    (16, 32): lambda l, i: (g(l) if i < 2 or 4 <= i < 6 else g(l) + 8, t(l) * 4 + (0 if i < 4 else 16)),
    (32, 8): lambda l, i: (g(l) if i == 0 else g(l) + 8, t(l) * 2),
    (32, 16): lambda l, i: (g(l) if i in (0, 2) else g(l) + 8, t(l) * 2 + (0 if i < 2 else 8)),
    (8, 32): lambda l, i: (g(l) if i < 4 else g(l) + 8, t(l) * 8),
    (8, 64): lambda l, i: (g(l) if i < 4 or 8 <= i < 12 else g(l) + 8, t(l) * 8 + (0 if i < 8 else 32)),
    (4, 64): lambda l, i: (g(l) if i < 8 else g(l) + 8, t(l) * 16),
    (4, 128): lambda l, i: (g(l) if i < 8 or 16 <= i < 24 else g(l) + 8, t(l) * 16 + (0 if i < 16 else 64)),
}
# Rows of B that no dense product has.
LONG_B = {
    (16, 32): lambda l, i: (t(l) * 2 + (i & 1) + i // 2 * 8, g(l)),
    (32, 16): lambda l, i: (t(l) + 4 * i, g(l)),
    (8, 64): lambda l, i: (t(l) * 4 + (i & 3) + i // 4 * 16, g(l)),
    (4, 128): lambda l, i: (t(l) * 8 + (i & 7) + i // 8 * 32, g(l)),
}
# The thread of its group of four, and the first bit, where the metadata of a row and of a chunk of it stand; s is the selector.
METADATA = {
    (16, 16): lambda row, chunk, s: (s, chunk * 4 + (16 if row >= 8 else 0)),
    (16, 32): lambda row, chunk, s: (2 * s + (chunk >= 4), chunk % 4 * 4 + (16 if row >= 8 else 0)),
    (32, 8): lambda row, chunk, s: (s, chunk * 4 + (16 if row >= 8 else 0)),
    (32, 16): lambda row, chunk, s: (2 * s + (chunk >= 4), chunk % 4 * 4 + (16 if row >= 8 else 0)),
    (8, 32): lambda row, chunk, s: (2 * s + (row >= 8), chunk * 4),
    (8, 64): lambda row, chunk, s: ((row >= 8) + (2 if chunk >= 8 else 0), chunk % 8 * 4),
    (4, 64): lambda row, chunk, s: (2 * s + (row >= 8), chunk * 4),
    (4, 128): lambda row, chunk, s: ((row >= 8) + (2 if chunk >= 8 else 0), chunk % 8 * 4),
}
# Elements of a chunk, and in how many parts the indices cut it.
CHUNK = {32: 2, 16: 4, 8: 4, 4: 8}


def integers(rng, ty, shape):
    """Numbers that every format holds."""
    low, high = matrix.limits(ty)
    return rng.integers(low, high + 1, shape)


def sparse_matrix(rng, numbers, bits, ordered):
    """Puts half of the numbers of each row into random places.

    Returns the whole matrix, the stored numbers row by row, and the nibbles of metadata of each row."""
    m, stored = numbers.shape
    chunk = CHUNK[bits]
    whole = np.zeros((m, stored * 2), numbers.dtype)
    packed = np.zeros((m, stored), numbers.dtype)
    nibbles = [[0] * (stored * 2 // chunk) for _ in range(m)]
    for row in range(m):
        for at in range(stored * 2 // chunk):
            values = numbers[row, at * chunk // 2 : (at + 1) * chunk // 2]
            if bits == 32:
                place = int(rng.integers(2))
                nibbles[row][at] = (0b0100, 0b1110)[place]
                whole[row, at * 2 + place] = values[0]
            else:
                first, second = (int(x) for x in rng.choice(4, 2, replace=False))
                if ordered and first > second:
                    first, second = second, first
                nibbles[row][at] = second << 2 | first
                size = chunk // 4
                for part, run in ((first, values[:size]), (second, values[size:])):
                    whole[row, at * chunk + part * size : at * chunk + (part + 1) * size] = run
            packed[row, at * chunk // 2 : (at + 1) * chunk // 2] = values
    return whole, packed, nibbles


def stored_fragment(ty, packed, bits, k):
    """The registers of every lane that hold the stored numbers."""
    per = 32 // bits
    place = SPARSE_A[bits, k]

    def stored_place(lane, i):
        row, first_column = place(lane, i)
        return row, first_column // 2 + i % per

    return words(ty, packed, stored_place, 16 * k // 2 // 32)


def metadata_fragment(rng, nibbles, bits, k, selector):
    """A word a lane; lanes that hold no metadata have random bits."""
    out = [[int(rng.integers(2**32))] for _ in range(32)]
    clean = set()
    for row, line in enumerate(nibbles):
        for chunk, nibble in enumerate(line):
            thread, bit = METADATA[bits, k](row, chunk, selector)
            lane = row % 8 * 4 + int(thread)
            if lane not in clean:
                clean.add(lane)
                out[lane][0] = 0
            out[lane][0] |= nibble << bit
    return out


def b_fragment(ty, numbers, bits, k):
    place = LONG_B.get((bits, k)) or B[bits, k]
    return words(ty, numbers, place, k * 8 // 32)


def text_of(instruction, rest):
    return [f"{instruction} {rest}", "Written by reference/sparse.py."]


def mma_sp(name, k, d, a, b, c, selector, version, target, ordered=False, modifiers=""):
    rng = np.random.default_rng(k * 100 + selector)
    bits = BITS[a]
    am, packed, nibbles = sparse_matrix(rng, integers(rng, a, (16, k // 2)), bits, ordered)
    bm = integers(rng, b, (k, 8))
    cm = rng.integers(-9, 10, (16, 8))
    if "satfinite" in modifiers:
        cm = np.where(rng.integers(0, 2, (16, 8)) == 0, 2**31 - 5, -(2**31) + 5)
    dm = am @ bm + cm
    if "satfinite" in modifiers:
        dm = np.clip(dm, -(2**31), 2**31 - 1)
    sparse = "mma.sp::ordered_metadata" if ordered else "mma.sp"
    instruction = f"{sparse}.sync.aligned.m16n8k{k}.row.col{modifiers}.{d}.{a}.{b}.{c}"
    fragment_kernel(
        name,
        text_of(instruction, "of small integers, with random metadata; expected from numpy."),
        instruction,
        version,
        target,
        stored_fragment(a, packed, bits, k),
        b_fragment(b, bm, bits, k),
        words(c, cm, C, 4),
        words(d, dm, C, 4),
        False,
        {"e": metadata_fragment(rng, nibbles, bits, k, selector)},
        f", %e0, {selector}",
    )


def e8m0(bits):
    return Fraction(2) ** (bits - 127)


def ue4m3(bits):
    values = {code: value for value, code in SMALL["e4m3"].items()}
    return Fraction(values[bits])


def scale_fragment(rng, scales, matrix_a, byte, thread):
    """A word a lane, from the bytes of scales[line][index]; random elsewhere."""
    out = [[int(rng.integers(2**32))] for _ in range(32)]
    for line, of_line in enumerate(scales):
        if matrix_a:
            lane = line % 8 * 4 + 2 * thread + (line >= 8)
        else:
            lane = line * 4 + thread
        for index, scale in enumerate(of_line):
            shift = 8 * (byte + index)
            out[lane][0] = out[lane][0] & ~(0xFF << shift) | int(scale) << shift
    return out


def to_f32(x):
    """The nearest binary32, ties to even; no subnormals and no overflow come here."""
    if x == 0:
        return Fraction(0)
    exponent = 0
    while abs(x) * Fraction(2) ** -exponent >= 2:
        exponent += 1
    while abs(x) * Fraction(2) ** -exponent < 1:
        exponent -= 1
    quantum = Fraction(2) ** (exponent - 23)
    return round(x / quantum) * quantum


def scaled(name, kind, k, a, b, vector, stype, selectors, sparse=False, exact=True, version="8.7"):
    """Block-scaled products. `exact`: of integers, whose sums are exact in any order; without it each of the sums is rounded, in
    the order that docs/matrix.md states."""
    rng = np.random.default_rng(k + 7 * sparse + 31 * exact)
    held = "packed" if kind in ("mxf4", "mxf4nvf4") else a
    other = "packed" if kind in ("mxf4", "mxf4nvf4") else b
    bits, count = BITS[held], int(vector[0]) if vector else dict(mxf4=2, mxf8f6f4=1)[kind]
    if exact:
        numbers, bm = rng.integers(-3, 4, (16, k // 2 if sparse else k)), rng.integers(-3, 4, (k, 8))
    else:
        largest = dict(e4m3=448, e5m2=57344)
        any_of = lambda ty, shape: rng.choice(
            [x for x in SMALL["e2m1" if ty == "packed" else ty] if abs(x) <= largest.get(ty, 100)], shape
        )
        numbers, bm = any_of(held, (16, k // 2 if sparse else k)), any_of(other, (k, 8))
    if sparse:
        am, packed, nibbles = sparse_matrix(rng, numbers, bits, True)
    else:
        am = numbers
    if stype == "ue8m0":
        spread = 3 if exact else 12
        a_scales, b_scales = (rng.integers(127 - spread, 128 + spread, (lines, count)) for lines in (16, 8))
        value = e8m0
    else:
        # 0.5 to 3.75, and so on.
        a_scales, b_scales = (rng.integers(0x30, 0x48, (lines, count)) for lines in (16, 8))
        value = ue4m3
    cm = rng.integers(-9, 10, (16, 8))
    dm = []
    for i in range(16):
        row = []
        for j in range(8):
            total = Fraction(int(cm[i, j]))
            for x in range(k):
                part = x * count // k
                term = Fraction(float(am[i, x])) * Fraction(float(bm[x, j])) * value(a_scales[i, part]) * value(b_scales[j, part])
                total = total + term if exact else to_f32(total + term)
            assert total == to_f32(total)
            row.append(float(total))
        dm.append(row)
    (byte_a, thread_a), (byte_b, thread_b) = selectors
    more = {
        "s": scale_fragment(rng, a_scales, True, byte_a, thread_a),
        "t": scale_fragment(rng, b_scales, False, byte_b, thread_b),
    }
    tail = f", %s0, {{{byte_a}, {thread_a}}}, %t0, {{{byte_b}, {thread_b}}}"
    if sparse:
        more = {"e": metadata_fragment(rng, nibbles, bits, k, 0)} | more
        tail = ", %e0, 0" + tail
        fragment_a = stored_fragment(held, packed, bits, k)
    else:
        fragment_a = words(held, am, A[bits, k], 16 * k // 32)
    opcode = "mma.sp::ordered_metadata" if sparse else "mma"
    vector = f".scale_vec::{vector}" if vector else ""
    instruction = f"{opcode}.sync.aligned.m16n8k{k}.row.col.kind::{kind}.block_scale{vector}.f32.{a}.{b}.f32.{stype}"
    rest = "of small integers and scales" if exact else "of random numbers and scales, each sum rounded"
    fragment_kernel(
        name,
        text_of(instruction, f"{rest}; expected from exact fractions."),
        instruction,
        version,
        "sm_120a",
        fragment_a,
        b_fragment(other, bm, bits, k),
        words("f32", cm, C, 4),
        words("f32", np.array(dm), C, 4),
        False,
        more,
        tail,
    )


def equal_indices(name, seed, k, d, ty, version):
    """Metadata that are not valid: what docs/matrix.md says of them."""
    rng = np.random.default_rng(seed)
    chunks = k // 4
    packed, bm = rng.integers(-3, 4, (16, k // 2)), rng.integers(-3, 4, (k, 8))
    nibbles = [[(0b0000, 0b0101, 0b1010, 0b1111)[(row + chunk) % 4] for chunk in range(chunks)] for row in range(16)]
    dm = np.zeros((16, 8), int)
    for row in range(16):
        for at in range(k // 2):
            dm[row] += packed[row, at] * bm[at // 2 * 4 + (row + at // 2) % 4]
    instruction = f"mma.sp.sync.aligned.m16n8k{k}.row.col.{d}.{ty}.{ty}.{d}"
    fragment_kernel(
        name,
        text_of(instruction, "with indices that are equal, which is undefined: each counts by itself. Expected from numpy."),
        instruction,
        version,
        "sm_80",
        stored_fragment(ty, packed, BITS[ty], k),
        b_fragment(ty, bm, BITS[ty], k),
        words(d, dm * 0, C, 4),
        words(d, dm, C, 4),
        False,
        {"e": metadata_fragment(rng, nibbles, BITS[ty], k, 0)},
        ", %e0, 0",
    )


def infinities():
    """What A leaves out is multiplied with nothing: infinities in these rows of B do not show."""
    rng = np.random.default_rng(6)
    packed, bm = rng.integers(-3, 4, (16, 8)), rng.integers(-3, 4, (16, 8))
    nibbles = [[0b1100] * 4 for _ in range(16)]
    am = np.zeros((16, 16), int)
    am[:, 0::4], am[:, 3::4] = packed[:, 0::2], packed[:, 1::2]
    dm = am @ bm
    registers = b_fragment("f16", bm, 16, 16)
    for lane, held in enumerate(registers):
        for i in range(4):
            if B[16, 16](lane, i)[0] % 4 in (1, 2):
                held[i // 2] = held[i // 2] & ~(0xFFFF << i % 2 * 16) | 0x7C00 << i % 2 * 16
    instruction = "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    fragment_kernel(
        "mma_sp_infinities",
        text_of(instruction, "with infinities where A has nothing. Expected from numpy."),
        instruction,
        "8.5",
        "sm_80",
        stored_fragment("f16", packed, 16, 16),
        registers,
        words("f32", dm * 0, C, 4),
        words("f32", dm, C, 4),
        False,
        {"e": metadata_fragment(rng, nibbles, 16, 16, 3)},
        ", %e0, 3",
    )


def main():
    mma_sp("mma_sp_f16_k16", 16, "f16", "f16", "f16", "f16", 2, "7.1", "sm_80")
    mma_sp("mma_sp_f16_k32", 32, "f32", "f16", "f16", "f32", 1, "7.1", "sm_80")
    mma_sp("mma_sp_bf16_k16", 16, "f32", "bf16", "bf16", "f32", 3, "8.5", "sm_80", True)
    mma_sp("mma_sp_bf16_k32", 32, "f32", "bf16", "bf16", "f32", 0, "7.1", "sm_80")
    mma_sp("mma_sp_tf32_k8", 8, "f32", "tf32", "tf32", "f32", 1, "7.1", "sm_80")
    mma_sp("mma_sp_tf32_k16", 16, "f32", "tf32", "tf32", "f32", 1, "8.5", "sm_80", True)
    mma_sp("mma_sp_s8_k32", 32, "s32", "s8", "u8", "s32", 1, "7.1", "sm_80")
    mma_sp("mma_sp_u8_k64", 64, "s32", "u8", "s8", "s32", 0, "8.5", "sm_80", True)
    mma_sp("mma_sp_s4_k64", 64, "s32", "s4", "s4", "s32", 0, "7.1", "sm_80", False, ".satfinite")
    mma_sp("mma_sp_u4_k128", 128, "s32", "u4", "s4", "s32", 0, "7.1", "sm_80")
    mma_sp("mma_sp_e4m3_k64", 64, "f32", "e4m3", "e5m2", "f32", 0, "8.4", "sm_89")
    mma_sp("mma_sp_e3m2_k64", 64, "f16", "e3m2", "e2m1", "f16", 0, "8.7", "sm_120a", True, ".kind::f8f6f4")
    equal_indices("mma_sp_equal_indices", 5, 16, "f32", "f16", "7.1")
    equal_indices("mma_sp_equal_indices_s8", 7, 32, "s32", "s8", "7.1")
    infinities()
    matrix.mma("mma_e2m3_k32", 16, 8, 32, "f32", "e2m3", "e2m1", "f32", "8.7", "sm_120a", ".kind::f8f6f4")
    matrix.mma("mma_e2m1_k32", 16, 8, 32, "f16", "e2m1", "e3m2", "f16", "8.7", "sm_120a", ".kind::f8f6f4")
    scaled("mma_mxf8f6f4", "mxf8f6f4", 32, "e4m3", "e2m1", None, "ue8m0", ((1, 1), (3, 2)))
    scaled("mma_mxf8f6f4_rounded", "mxf8f6f4", 32, "e5m2", "e2m3", "1X", "ue8m0", ((0, 0), (2, 3)), exact=False)
    scaled("mma_mxf4", "mxf4", 64, "e2m1", "e2m1", None, "ue8m0", ((2, 1), (0, 1)))
    scaled("mma_nvf4_2x", "mxf4nvf4", 64, "e2m1", "e2m1", "2X", "ue8m0", ((0, 0), (2, 0)))
    scaled("mma_nvf4_4x", "mxf4nvf4", 64, "e2m1", "e2m1", "4X", "ue4m3", ((0, 1), (0, 2)), exact=False)
    scaled("mma_nvf4_4x_ue8m0", "mxf4nvf4", 64, "e2m1", "e2m1", "4X", "ue8m0", ((0, 0), (0, 3)), version="9.1")
    scaled("mma_sp_mxf8f6f4", "mxf8f6f4", 64, "e3m2", "e4m3", "1X", "ue8m0", ((2, 0), (1, 1)), sparse=True)
    scaled("mma_sp_mxf4", "mxf4", 128, "e2m1", "e2m1", "2X", "ue8m0", ((0, 1), (2, 3)), sparse=True)
    scaled("mma_sp_nvf4", "mxf4nvf4", 128, "e2m1", "e2m1", "4X", "ue4m3", ((0, 0), (0, 1)), sparse=True, exact=False)


if __name__ == "__main__":
    main()
