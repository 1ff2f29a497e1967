"""Writes the kernels of `mma` and `wmma` beside this folder, with the results that must come out.

    python3 tests/run/reference/matrix.py

The matrices hold small integers, so that every sum is exact in whatever order it is made. Which thread holds which element
is written down here from the manual's sections "Matrix Fragments for mma", case by case.
"""

import numpy as np

from archive import HERE, header, in_lines


def g(lane):
    return lane // 4


def t(lane):
    return lane % 4


# Row and column of element i of A, by the bits of an element and k (m is 16 unless noted).
A = {
    (16, 8): lambda l, i: (g(l) if i < 2 else g(l) + 8, t(l) * 2 + (i & 1)),
    (16, 16): lambda l, i: (g(l) if i < 2 or 4 <= i < 6 else g(l) + 8, t(l) * 2 + (i & 1) + (0 if i < 4 else 8)),
    (32, 4): lambda l, i: (g(l) if i == 0 else g(l) + 8, t(l)),
    (32, 8): lambda l, i: (g(l) if i in (0, 2) else g(l) + 8, t(l) if i < 2 else t(l) + 4),
    (8, 16): lambda l, i: (g(l) if i < 4 else g(l) + 8, t(l) * 4 + (i & 3)),
    (8, 32): lambda l, i: (g(l) if i < 4 or 8 <= i < 12 else g(l) + 8, t(l) * 4 + (i & 3) + (0 if i < 8 else 16)),
    (4, 32): lambda l, i: (g(l) if i < 8 else g(l) + 8, t(l) * 8 + (i & 7)),
    (4, 64): lambda l, i: (g(l) if i < 8 or 16 <= i < 24 else g(l) + 8, t(l) * 8 + (i & 7) + (0 if i < 16 else 32)),
    (1, 128): lambda l, i: (g(l) if i < 32 else g(l) + 8, t(l) * 32 + (i & 31)),
    (1, 256): lambda l, i: (g(l) if i < 32 or 64 <= i < 96 else g(l) + 8, t(l) * 32 + (i & 31) + (0 if i < 64 else 128)),
    (64, 4): lambda l, i: (g(l) if i == 0 else g(l) + 8, t(l)),
    (64, 8): lambda l, i: (g(l) if i in (0, 2) else g(l) + 8, t(l) if i < 2 else t(l) + 4),
    (64, 16): lambda l, i: (g(l) if i % 2 == 0 else g(l) + 8, i * 2 + t(l) if i % 2 == 0 else i * 2 - 2 + t(l)),
}
# The same where m is 8.
A8 = {
    (8, 16): lambda l, i: (g(l), t(l) * 4 + i),
    (4, 32): lambda l, i: (g(l), t(l) * 8 + i),
    (1, 128): lambda l, i: (g(l), t(l) * 32 + i),
    (64, 4): lambda l, i: (g(l), t(l)),
}
B = {
    (16, 8): lambda l, i: (t(l) * 2 + i, g(l)),
    (16, 16): lambda l, i: (t(l) * 2 + (i & 1) + (0 if i < 2 else 8), g(l)),
    (32, 4): lambda l, i: (t(l), g(l)),
    (32, 8): lambda l, i: (t(l) + 4 * i, g(l)),
    (8, 16): lambda l, i: (t(l) * 4 + i, g(l)),
    (8, 32): lambda l, i: (t(l) * 4 + (i & 3) + (0 if i < 4 else 16), g(l)),
    (4, 32): lambda l, i: (t(l) * 8 + i, g(l)),
    (4, 64): lambda l, i: (t(l) * 8 + (i & 7) + (0 if i < 8 else 32), g(l)),
    (1, 128): lambda l, i: (t(l) * 32 + i, g(l)),
    (1, 256): lambda l, i: (t(l) * 32 + (i & 31) + (0 if i < 32 else 128), g(l)),
    (64, 4): lambda l, i: (t(l), g(l)),
    (64, 8): lambda l, i: (t(l) + 4 * i, g(l)),
    (64, 16): lambda l, i: (t(l) + 4 * i, g(l)),
}


def C(l, i):
    return (g(l) if i < 2 else g(l) + 8, t(l) * 2 + (i & 1))


BITS = dict(f16=16, bf16=16, tf32=32, f32=32, s32=32, f64=64, s8=8, u8=8, e4m3=8, e5m2=8, s4=4, u4=4, b1=1)


def small_float(exponent_bits, fraction_bits):
    """Integers to encodings of a small format."""
    table = {}
    bias = (1 << exponent_bits - 1) - 1
    for bits in range(1 << exponent_bits + fraction_bits):
        exponent, fraction = bits >> fraction_bits, bits & (1 << fraction_bits) - 1
        if exponent == 0:
            value = fraction * 2.0 ** (1 - bias - fraction_bits)
        else:
            value = (1 + fraction / (1 << fraction_bits)) * 2.0 ** (exponent - bias)
        table[value] = bits
        table[-value] = bits | 1 << exponent_bits + fraction_bits
    return table


E4M3, E5M2 = small_float(4, 3), small_float(5, 2)


def encode(ty, value):
    value = int(value)
    if ty == "f16":
        return int(np.float16(value).view(np.uint16))
    if ty == "bf16":
        return int(np.float32(value).view(np.uint32)) >> 16
    if ty in ("tf32", "f32"):
        return int(np.float32(value).view(np.uint32))
    if ty == "f64":
        return int(np.float64(value).view(np.uint64))
    if ty == "e4m3":
        return E4M3[value]
    if ty == "e5m2":
        return E5M2[value]
    return value & (1 << BITS[ty]) - 1


def limits(ty):
    """The integers that the factors are made of."""
    return {"b1": (0, 1), "u4": (0, 15), "s4": (-8, 7), "u8": (0, 255), "s8": (-128, 127)}.get(ty, (-3, 3))


def words(ty, matrix, place, elements):
    """The fragment of every lane: a list of registers each."""
    bits = BITS[ty]
    per = max(1, 32 // bits)
    out = []
    for lane in range(32):
        lane_words = []
        for register in range(elements // per):
            word = 0
            for part in range(per):
                word |= encode(ty, matrix[place(lane, register * per + part)]) << part * bits
            lane_words.append(word)
        out.append(lane_words)
    return out


def fragment_kernel(name, text, instruction, version, target, a, b, c, expected, wide, more={}, tail="", into=None):
    """A kernel whose lanes load their registers from constants, multiply and store their results.

    more: further registers by letter, tail: the operands behind c, into: the registers of the results."""
    size, move = (8, "b64") if wide else (4, "b32")
    reg = ".b64" if wide else ".b32"
    inputs = dict(a=a, b=b, c=c) | more
    counts = {label: len(fragment[0]) for label, fragment in (inputs | {"d": expected}).items()}
    body = f".version {version}\n.target {target}\n.address_size 64\n\n"
    for label, fragment in inputs.items():
        values = ", ".join(f"{w:#x}" for lane in fragment for w in lane)
        body += f".const .align 16 {reg} in_{label}[{32 * len(fragment[0])}] = {{{values}}};\n"
    body += "\n.visible .entry test(.param .u64 out)\n{\n    .reg .b32 %lane;\n    .reg .b64 %out, %place;\n"
    for label, count in counts.items():
        body += f"    .reg {reg} %{label}<{count}>;\n"
    body += "    mov.u32 %lane, %tid.x;\n    ld.param.u64 %out, [out];\n"
    for label in inputs:
        count = counts[label]
        body += f"    .reg .b64 %base_{label};\n    mov.u64 %base_{label}, in_{label};\n"
        body += f"    mad.wide.u32 %base_{label}, %lane, {count * size}, %base_{label};\n"
        for i in range(count):
            body += f"    ld.const.{move} %{label}{i}, [%base_{label}+{i * size}];\n"
    registers = {label: [f"%{label}{i}" for i in range(counts[label])] for label in "dabc"}
    registers["d"] = [f"%{register}" for register in into] if into else registers["d"]
    vectors = ["{" + ", ".join(registers[label]) + "}" for label in "dabc"]
    body += f"    {instruction} {', '.join(vectors)}{tail};\n"
    body += f"    mad.wide.u32 %place, %lane, {counts['d'] * size}, %out;\n"
    for i in range(counts["d"]):
        body += f"    st.global.{move} [%place+{i * size}], {registers['d'][i]};\n"
    body += "    ret;\n}\n"
    out = [f"{w:#x}" for lane in expected for w in lane]
    dtype = "u64" if wide else "u32"
    what = f"--block 32 --arg {dtype}[32x{counts['d']}]"
    (HERE / f"{name}.ptx").write_text(header(text, what, in_lines(0, out)) + body)


def mma(name, m, n, k, d, a, b, c, version, target, modifiers="", suffix="", combine=None, into=None):
    rng = np.random.default_rng(m * 1000 + k)
    am = rng.integers(limits(a)[0], limits(a)[1] + 1, (m, k))
    bm = rng.integers(limits(b)[0], limits(b)[1] + 1, (k, n))
    cm = rng.integers(-9, 10, (m, n))
    if combine is None:
        dm = am @ bm + cm
    else:
        dm = np.array([[sum(combine(am[i, x], bm[x, j]) for x in range(k)) for j in range(n)] for i in range(m)]) + cm
    if "satfinite" in modifiers:
        cm = np.where(rng.integers(0, 2, (m, n)) == 0, 2**31 - 5, -(2**31) + 5)
        dm = np.clip(am @ bm + cm, -(2**31), 2**31 - 1)
    place_a = (A if m == 16 else A8)[BITS[a], k]
    sizes = [m * k // 32, k * n // 32, m * n // 32]
    fragments = [words(a, am, place_a, sizes[0]), words(b, bm, B[BITS[b], k], sizes[1]), words(c, cm, C, sizes[2])]
    expected = words(d, dm, C, sizes[2])
    instruction = f"mma.sync.aligned.m{m}n{n}k{k}.row.col{modifiers}.{d}.{a}.{b}.{c}{suffix}"
    text = [
        f"{instruction} of small integers, in the fragments of the manual; expected from numpy.",
        "Written by reference/matrix.py.",
    ]
    fragment_kernel(name, text, instruction, version, target, *fragments, expected, BITS[d] == 64, into=into)


def quad_pairs(name, alayout, blayout, d, c):
    """mma.m8n8k4 of halves: four products, one for each quad pair."""
    rng = np.random.default_rng(4)
    am, bm = rng.integers(-3, 4, (4, 8, 4)), rng.integers(-3, 4, (4, 4, 8))
    cm = rng.integers(-9, 10, (4, 8, 8))
    dm = am @ bm + cm

    def pair(lane):
        return lane % 16 // 4

    def place_a(lane, i):
        up = 4 if lane >= 16 else 0
        row, column = (lane % 4 + up, i) if alayout == "row" else (i % 4 + up, lane % 4)
        return pair(lane), row, column

    def place_b(lane, i):
        up = 4 if lane >= 16 else 0
        row, column = (lane % 4, i % 4 + up) if blayout == "row" else (i, lane % 4 + up)
        return pair(lane), row, column

    def place_half(lane, i):
        return pair(lane), lane % 4 + (4 if lane >= 16 else 0), i

    def place_single(lane, i):
        x = (lane & 1) + (i & 2)
        return pair(lane), x if lane < 16 else x + 4, (i & 4) + (lane & 2) + (i & 1)

    place = dict(f16=place_half, f32=place_single)
    fragments = [words("f16", am, place_a, 4), words("f16", bm, place_b, 4), words(c, cm, place[c], 8)]
    instruction = f"mma.sync.aligned.m8n8k4.{alayout}.{blayout}.{d}.f16.f16.{c}"
    text = [
        f"{instruction}: four products, one for each quad pair; expected from numpy.",
        "Written by reference/matrix.py.",
    ]
    fragment_kernel(name, text, instruction, "7.0", "sm_70", *fragments, words(d, dm, place[d], 8), False)


def stored(ty, matrix, by_column):
    """Bytes of a matrix in memory."""
    flat = (matrix.T if by_column else matrix).ravel()
    if BITS[ty] >= 8:
        kind = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}[BITS[ty]]
        return np.array([encode(ty, v) for v in flat], kind).tobytes()
    per = 8 // BITS[ty]
    return bytes(
        sum(encode(ty, v) << i * BITS[ty] for i, v in enumerate(flat[at : at + per])) for at in range(0, len(flat), per)
    )


def wmma(name, m, n, k, d, ab, c, alayout, blayout, registers, version, target, types, prefix="wmma.mma", modifiers=""):
    """Load, multiply, store: the fragments never show."""
    rng = np.random.default_rng(m * 100 + n + k)
    am = rng.integers(limits(ab)[0], limits(ab)[1] + 1, (m, k))
    bm = rng.integers(limits(ab)[0], limits(ab)[1] + 1, (k, n))
    cm = rng.integers(-9, 10, (m, n))
    dm = am @ bm + cm
    if ab == "b1":
        dm = np.array([[sum(am[i, x] ^ bm[x, j] for x in range(k)) for j in range(n)] for i in range(m)]) + cm
    data = [stored(ab, am, alayout == "col"), stored(ab, bm, blayout == "col"), stored(c, cm, True)]
    counts = dict(zip("abcd", registers))
    kind = {"f64": ".f64", "f32": ".f32"}
    body = f".version {version}\n.target {target}\n.address_size 64\n\n"
    for label, values in zip("abc", data):
        text = ", ".join(str(v) for v in values)
        body += f".global .align 32 .b8 in_{label}[{len(values)}] = {{{text}}};\n"
    body += "\n.visible .entry test(.param .u64 out)\n{\n    .reg .b64 %out, %at;\n"
    for label, ty in zip("abcd", (ab, ab, c, d)):
        body += f"    .reg {kind.get(ty, '.b32')} %{label}<{counts[label]}>;\n"
    vector = {label: "{" + ", ".join(f"%{label}{i}" for i in range(counts[label])) + "}" for label in "abcd"}
    shape = f"m{m}n{n}k{k}"
    strides = dict(a=k if alayout == "row" else m, b=n if blayout == "row" else k, c=m)
    body += "    ld.param.u64 %out, [out];\n"
    for label, layout, ty in (("a", alayout, ab), ("b", blayout, ab), ("c", "col", c)):
        body += f"    mov.u64 %at, in_{label};\n"
        body += f"    wmma.load.{label}.sync.aligned.{layout}.{shape}.global.{ty} {vector[label]}, [%at], {strides[label]};\n"
    operands = ", ".join(vector[label] for label in "dabc")
    instruction = f"{prefix}.sync.aligned.{alayout}.{blayout}.{shape}{modifiers}.{types}"
    body += f"    {instruction} {operands};\n"
    body += f"    wmma.store.d.sync.aligned.row.{shape}.global.{d} [%out], {vector['d']};\n    ret;\n}}\n"
    show = {"f16": "f16", "f32": "f32", "f64": "f64", "s32": "s32"}[d]
    text = [f"{instruction} with loads and a store; C is stored by columns. Expected from numpy.", "Written by reference/matrix.py."]
    out = [str(v) for v in dm.ravel()]
    (HERE / f"{name}.ptx").write_text(header(text, f"--block 32 --arg {show}[{m}x{n}]", in_lines(0, out)) + body)


def main():
    mma("mma_f16_k8", 16, 8, 8, "f32", "f16", "f16", "f32", "7.0", "sm_80")
    mma("mma_f16_k16", 16, 8, 16, "f32", "f16", "f16", "f32", "7.0", "sm_80")
    mma("mma_f16_f16_k16", 16, 8, 16, "f16", "f16", "f16", "f16", "7.0", "sm_80")
    # Results in registers of C that have another place, or in those of A.
    c_turned, a_turned = ["c1", "c2", "c3", "c0"], ["a1", "a2", "a3", "a0"]
    mma("mma_into_c", 16, 8, 16, "f32", "f16", "f16", "f32", "7.0", "sm_80", into=c_turned)
    mma("mma_into_a", 16, 8, 16, "f32", "f16", "f16", "f32", "7.0", "sm_80", into=a_turned)
    mma("mma_into_b", 16, 8, 16, "f32", "f16", "f16", "f32", "7.0", "sm_80", into=["b1", "c0", "b0", "c2"])
    mma("mma_f16_into_c", 16, 8, 16, "f16", "f16", "f16", "f16", "7.0", "sm_80", into=["c1", "c0"])
    mma("mma_tf32_into_a", 16, 8, 8, "f32", "tf32", "tf32", "f32", "7.0", "sm_80", into=a_turned)
    mma("mma_s8_into_c", 16, 8, 32, "s32", "s8", "s8", "s32", "7.0", "sm_80", into=c_turned)
    mma("mma_bf16_k8", 16, 8, 8, "f32", "bf16", "bf16", "f32", "7.0", "sm_80")
    mma("mma_bf16_k16", 16, 8, 16, "f32", "bf16", "bf16", "f32", "7.0", "sm_80")
    mma("mma_tf32_k4", 16, 8, 4, "f32", "tf32", "tf32", "f32", "7.0", "sm_80")
    mma("mma_tf32_k8", 16, 8, 8, "f32", "tf32", "tf32", "f32", "7.0", "sm_80")
    mma("mma_f64_m8", 8, 8, 4, "f64", "f64", "f64", "f64", "7.0", "sm_80")
    for k in (4, 8, 16):
        mma(f"mma_f64_k{k}", 16, 8, k, "f64", "f64", "f64", "f64", "7.8", "sm_90")
    mma("mma_s8_m8", 8, 8, 16, "s32", "s8", "u8", "s32", "7.0", "sm_80")
    mma("mma_u8_k16", 16, 8, 16, "s32", "u8", "s8", "s32", "7.0", "sm_80")
    mma("mma_s8_k32", 16, 8, 32, "s32", "s8", "s8", "s32", "7.0", "sm_80")
    mma("mma_s8_satfinite", 16, 8, 32, "s32", "s8", "s8", "s32", "7.0", "sm_80", ".satfinite")
    mma("mma_s4_m8", 8, 8, 32, "s32", "s4", "u4", "s32", "7.0", "sm_80")
    mma("mma_u4_k32", 16, 8, 32, "s32", "u4", "u4", "s32", "7.0", "sm_80")
    mma("mma_s4_k64", 16, 8, 64, "s32", "s4", "s4", "s32", "7.0", "sm_80")
    mma("mma_b1_m8_xor", 8, 8, 128, "s32", "b1", "b1", "s32", "7.1", "sm_80", "", ".xor.popc", lambda a, b: a ^ b)
    mma("mma_b1_k128_and", 16, 8, 128, "s32", "b1", "b1", "s32", "7.1", "sm_80", "", ".and.popc", lambda a, b: a & b)
    mma("mma_b1_k256_xor", 16, 8, 256, "s32", "b1", "b1", "s32", "7.1", "sm_80", "", ".xor.popc", lambda a, b: a ^ b)
    mma("mma_e4m3_k32", 16, 8, 32, "f32", "e4m3", "e5m2", "f32", "8.4", "sm_89")
    mma("mma_e5m2_k16", 16, 8, 16, "f16", "e5m2", "e4m3", "f16", "8.7", "sm_89")
    quad_pairs("mma_quad_pairs_f32", "row", "col", "f32", "f32")
    quad_pairs("mma_quad_pairs_f16", "col", "row", "f16", "f16")
    wmma("wmma_f16", 16, 16, 16, "f32", "f16", "f32", "row", "col", (8, 8, 8, 8), "7.0", "sm_80", "f32.f32")
    wmma("wmma_f16_wide", 8, 32, 16, "f16", "f16", "f32", "col", "row", (8, 8, 8, 4), "7.0", "sm_80", "f16.f32")
    wmma("wmma_f16_tall", 32, 8, 16, "f32", "f16", "f16", "row", "row", (8, 8, 4, 8), "7.0", "sm_80", "f32.f16")
    wmma("wmma_bf16", 16, 16, 16, "f32", "bf16", "f32", "col", "col", (4, 4, 8, 8), "7.0", "sm_80", "f32.bf16.bf16.f32")
    wmma("wmma_tf32", 16, 16, 8, "f32", "tf32", "f32", "row", "row", (4, 4, 8, 8), "7.0", "sm_80", "f32.tf32.tf32.f32")
    wmma("wmma_s8", 16, 16, 16, "s32", "s8", "s32", "row", "col", (2, 2, 8, 8), "7.0", "sm_80", "s32.s8.s8.s32")
    wmma("wmma_u8_tall", 32, 8, 16, "s32", "u8", "s32", "col", "row", (4, 1, 8, 8), "7.0", "sm_80", "s32.u8.u8.s32")
    wmma("wmma_s4", 8, 8, 32, "s32", "s4", "s32", "row", "col", (1, 1, 2, 2), "7.0", "sm_80", "s32.s4.s4.s32")
    wmma("wmma_b1", 8, 8, 128, "s32", "b1", "s32", "row", "col", (1, 1, 2, 2), "7.0", "sm_80", "s32.b1.b1.s32", "wmma.mma.xor.popc")
    wmma("wmma_f64", 8, 8, 4, "f64", "f64", "f64", "row", "col", (1, 1, 2, 2), "7.0", "sm_80", "f64.f64.f64.f64")


if __name__ == "__main__":
    main()
