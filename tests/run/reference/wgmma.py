"""Writes the kernels of `wgmma` beside this folder, with the results that must come out.

    python3 tests/run/reference/wgmma.py

The matrices hold small integers, so that every sum is exact. They are put into shared memory as the manual's "Shared Memory Matrix
Layout" and CUTLASS (make_gmma_desc) say, swizzles by rows: a row of the pattern exchanges its units of 16 bytes by its number.
"""

import numpy as np

import matrix
from archive import Arrays
from matrix import A, BITS, encode, g, t
from sparse import METADATA, sparse_matrix

SWIZZLES = {16: 0, 128: 1, 64: 2, 32: 3}


def swizzled(row, unit, width):
    """Where a unit of 16 bytes stands in its row of so many bytes: rows of 128 bytes are numbered from 0 to 7."""
    return unit ^ (row * width // 128) % (width // 16)


def along_k(numbers, ty, width):
    """A matrix of lines by k with k along the rows: its bytes, the leading and the stride offset, and bytes to go on by 32 bytes of k."""
    lines, k = numbers.shape
    bits = BITS[ty]
    per = 128 // bits
    units = k // per
    data = np.zeros(lines * k * bits // 8, np.uint8)
    for line in range(lines):
        for unit in range(units):
            packed = sum(encode(ty, numbers[line, unit * per + i]) << i * bits for i in range(per))
            if width == 16:
                # Core matrices of 8 lines and 16 bytes, by columns.
                at = (unit * (lines // 8) + line // 8) * 128 + line % 8 * 16
            else:
                assert units * 16 == width
                at = line * width + swizzled(line, unit, width) * 16
            data[at : at + 16] = list(packed.to_bytes(16, "little"))
    if width == 16:
        return data, lines // 8 * 128, 128, 2 * (lines // 8) * 128
    return data, 16, 8 * width, 32


def across_k(numbers, ty, width):
    """The same of halves with lines along the rows; to go on by 16 of k."""
    lines, k = numbers.shape
    assert BITS[ty] == 16
    data = np.zeros(lines * k * 2, np.uint8)
    for unit in range(lines // 8):
        for step in range(k):
            packed = sum(encode(ty, numbers[unit * 8 + i, step]) << i * 16 for i in range(8))
            if width == 16:
                at = unit * k * 16 + step * 16
            else:
                of_row = width // 16
                at = unit // of_row * k * width + step * width + swizzled(step, unit % of_row, width) * 16
            data[at : at + 16] = list(packed.to_bytes(16, "little"))
    if width == 16:
        return data, 128, k * 16, 256
    return data, k * width, 8 * width, 16 * width


def wgmma(name, n, steps, d, a, b, a_width, b_width, a_across=False, b_across=False, groups=1, signs=(1, 1), modifiers="", suffix="", add=True, selector=None):
    """a_width 0: A in registers; with a selector, half of A."""
    rng = np.random.default_rng(n + steps)
    k = {16: 16, 32: 8, 8: 32, 1: 256}[BITS[a]]
    limits = matrix.limits
    sparse = selector is not None
    held = k * steps
    k *= 2 if sparse else 1
    total = k * steps
    stored = rng.integers(limits(a)[0], limits(a)[1] + 1, (64 * groups, held))
    am = stored
    if sparse:
        assert steps == 1
        am, stored, nibbles = sparse_matrix(rng, stored, BITS[a], True)
    bm = rng.integers(limits(b)[0], limits(b)[1] + 1, (total, n))
    cm = rng.integers(-9, 10, (64 * groups, n))
    if "satfinite" in modifiers:
        cm = np.where(rng.integers(0, 2, cm.shape) == 0, 2**31 - 5, -(2**31) + 5)
    dm = am @ bm * (signs[0] * signs[1]) + (cm if add else 0)
    if "satfinite" in modifiers:
        dm = np.clip(dm, -(2**31), 2**31 - 1)
    tiles, descriptors, advances = {}, {}, {}
    if a_width:
        parts = [(across_k if a_across else along_k)(stored[64 * i : 64 * i + 64], a, a_width) for i in range(groups)]
        tiles["a"] = np.concatenate([part[0] for part in parts])
        descriptors["a"], advances["a"] = (parts[0][1], parts[0][2], a_width), parts[0][3]
        group_bytes = len(parts[0][0])
    data, leading, stride, advances["b"] = (across_k if b_across else along_k)(bm.T, b, b_width)
    tiles["b"], descriptors["b"] = data, (leading, stride, b_width)
    threads = 128 * groups
    per = max(1, 32 // BITS[d])
    count = 64 * n // 128 // per

    def word(numbers, thread, register):
        """A register of the accumulator."""
        lane, rows = thread % 32, thread // 32 * 16
        value = 0
        for part in range(per):
            i = register * per + part
            row, column = rows + g(lane) + i // 2 % 2 * 8, i // 4 * 8 + t(lane) * 2 + i % 2
            value |= encode(d, numbers[row, column]) << part * BITS[d]
        return value

    expected = [word(dm, thread, register) for thread in range(threads) for register in range(count)]
    before = [word(cm, thread, register) for thread in range(threads) for register in range(count)]
    instruction = f"wgmma.mma_async{'.sp' if sparse else ''}.sync.aligned.m64n{n}k{k}{modifiers}.{d}.{a}.{b}{suffix}"
    arrays = Arrays(name)
    text = ".version 8.4\n.target sm_90a\n.address_size 64\n\n"
    for label, tile in tiles.items():
        text += arrays.variable(f"in_{label}", "b8", tile, str)
        text += f".shared .align 1024 .b8 tile_{label}[{len(tile)}];\n"
    text += arrays.variable("in_c", "b32", before)
    registers = {}
    if not a_width:
        in_register = 32 // BITS[a]
        of_step = 16 * held // steps // 32 // in_register
        for step in range(steps):
            registers[step] = of_step
        words = []
        for thread in range(threads):
            for step in range(steps):
                for register in range(of_step):
                    value = 0
                    for part in range(in_register):
                        row, column = A[BITS[a], held // steps](thread % 32, register * in_register + part)
                        value |= encode(a, stored[thread // 32 * 16 + row, step * k + column]) << part * BITS[a]
                    words.append(value)
        text += arrays.variable("in_a", "b32", words)
    if sparse:
        # Every warp describes its 16 rows as those of mma.sp are described.
        metadata = [int(x) for x in rng.integers(2**32, size=threads)]
        for row, line in enumerate(nibbles):
            for chunk, nibble in enumerate(line):
                thread, bit = METADATA[BITS[a], k](row % 16, chunk, selector)
                place = row // 16 * 32 + row % 8 * 4 + int(thread)
                metadata[place] = metadata[place] & ~(0xF << bit) | nibble << bit
        text += arrays.variable("in_e", "b32", metadata)
    kind = ".f32" if d == "f32" else ".b32"
    text += f"\n.visible .entry test(.param .u64 out)\n{{\n    .reg .b32 %thread, %i, %at, %group;\n    .reg .b64 %out, %from, %wide, %da, %db;\n"
    text += f"    .reg .b32 %v<4>;\n    .reg {kind} %d<{count}>;\n    .reg .b32 %a<{max(1, sum(registers.values()))}>;\n    .reg .pred %more, %add;\n    .reg .b32 %e;\n"
    text += f"    mov.u32 %thread, %tid.x;\n    ld.param.u64 %out, [out];\n    mad.wide.u32 %out, %thread, {4 * count}, %out;\n"
    for label, tile in tiles.items():
        text += f"""    shl.b32 %i, %thread, 4;
copy_{label}:
    setp.lt.u32 %more, %i, {len(tile)};
    @!%more bra copied_{label};
    mov.u64 %from, in_{label};
    cvt.u64.u32 %wide, %i;
    add.u64 %from, %from, %wide;
    ld.global.v4.b32 {{%v0, %v1, %v2, %v3}}, [%from];
    mov.u32 %at, tile_{label};
    add.u32 %at, %at, %i;
    st.shared.v4.b32 [%at], {{%v0, %v1, %v2, %v3}};
    add.u32 %i, %i, {16 * threads};
    bra copy_{label};
copied_{label}:
"""
    text += f"    mov.u64 %from, in_c;\n    mad.wide.u32 %from, %thread, {4 * count}, %from;\n"
    text += "".join(f"    ld.global{kind} %d{i}, [%from+{4 * i}];\n" for i in range(count))
    if not a_width:
        total_registers = sum(registers.values())
        text += f"    mov.u64 %from, in_a;\n    mad.wide.u32 %from, %thread, {4 * total_registers}, %from;\n"
        text += "".join(f"    ld.global.b32 %a{i}, [%from+{4 * i}];\n" for i in range(total_registers))
    if sparse:
        text += "    mov.u64 %from, in_e;\n    mad.wide.u32 %from, %thread, 4, %from;\n    ld.global.b32 %e, [%from];\n"
    text += "    fence.proxy.async.shared::cta;\n    bar.sync 0;\n    shr.u32 %group, %thread, 7;\n"
    for label, (leading, stride, width) in descriptors.items():
        text += f"    mov.u32 %at, tile_{label};\n"
        if label == "a" and groups > 1:
            text += f"    mad.lo.u32 %at, %group, {group_bytes}, %at;\n"
        bits = leading >> 4 << 16 | stride >> 4 << 32 | SWIZZLES[width] << 62
        text += f"    shr.u32 %at, %at, 4;\n    cvt.u64.u32 %d{label}, %at;\n    or.b64 %d{label}, %d{label}, {bits:#x};\n"
    text += f"    setp.eq.u32 %add, {int(add)}, 1;\n    wgmma.fence.sync.aligned;\n"
    vector = "{" + ", ".join(f"%d{i}" for i in range(count)) + "}"
    at = 0
    for step in range(steps):
        if a_width:
            factor = "%da"
        else:
            factor = "{" + ", ".join(f"%a{at + i}" for i in range(registers[step])) + "}"
            at += registers[step]
        operands = [vector, factor, "%db"] + (["%e", str(selector)] if sparse else []) + ["%add" if step == 0 else "1"]
        if BITS[a] >= 8 and d != "s32":
            operands += [str(sign) for sign in signs]
        if BITS[a] == 16:
            operands += ([str(int(a_across))] if a_width else []) + [str(int(b_across))]
        text += f"    {instruction} {', '.join(operands)};\n"
        if step + 1 < steps:
            for label in descriptors:
                text += f"    add.u64 %d{label}, %d{label}, {advances[label] >> 4};\n"
    text += "    wgmma.commit_group.sync.aligned;\n    wgmma.wait_group.sync.aligned 0;\n"
    text += "".join(f"    st.global{kind} [%out+{4 * i}], %d{i};\n" for i in range(count)) + "    ret;\n}\n"
    where = lambda width, across: "in registers" if not width else ("not swizzled" if width == 16 else f"swizzled by {width} bytes") + (", transposed" if across else "")
    what = [
        f"{instruction}: A {where(a_width, a_across)}; B {where(b_width, b_across)}. Small integers; expected from numpy.",
        "Written by reference/wgmma.py.",
    ]
    arrays.kernel(what, f"--block {threads} --arg u32[{threads}x{count}]", arrays.expected(0, expected), text)


def main():
    wgmma("wgmma_f16", 16, 4, "f32", "f16", "f16", 128, 128, groups=2)
    wgmma("wgmma_f16_registers", 32, 2, "f16", "f16", "f16", 0, 64, signs=(1, -1))
    wgmma("wgmma_f16_transposed", 24, 1, "f32", "f16", "f16", 16, 16, a_across=True, b_across=True, add=False)
    wgmma("wgmma_bf16_transposed", 32, 1, "f32", "bf16", "bf16", 128, 32, a_across=True, b_across=True, signs=(-1, 1))
    wgmma("wgmma_bf16_wide", 40, 1, "f32", "bf16", "bf16", 32, 16)
    wgmma("wgmma_tf32", 8, 2, "f32", "tf32", "tf32", 16, 64)
    wgmma("wgmma_tf32_registers", 8, 1, "f32", "tf32", "tf32", 0, 32, add=False)
    wgmma("wgmma_e4m3", 24, 1, "f32", "e4m3", "e5m2", 32, 32)
    wgmma("wgmma_e5m2_registers", 8, 4, "f16", "e5m2", "e4m3", 0, 128)
    wgmma("wgmma_s8", 8, 1, "s32", "s8", "u8", 32, 32, modifiers=".satfinite")
    wgmma("wgmma_u8_registers", 16, 2, "s32", "u8", "u8", 0, 64)
    wgmma("wgmma_sp_f16", 16, 1, "f32", "f16", "f16", 32, 64, selector=1)
    wgmma("wgmma_sp_bf16_registers", 8, 1, "f32", "bf16", "bf16", 0, 16, selector=0, b_across=True, signs=(-1, 1))
    wgmma("wgmma_sp_tf32", 8, 1, "f32", "tf32", "tf32", 16, 64, selector=1, add=False)
    wgmma("wgmma_sp_e5m2", 24, 1, "f16", "e5m2", "e4m3", 32, 64, selector=0)
    wgmma("wgmma_sp_s8_registers", 8, 1, "s32", "s8", "u8", 0, 64, selector=0, modifiers=".satfinite")
    wgmma("wgmma_b1", 8, 1, "s32", "b1", "b1", 16, 32, suffix=".and.popc")
    wgmma("wgmma_f16_transposed_64", 64, 2, "f16", "f16", "f16", 0, 64, b_across=True, add=False)


if __name__ == "__main__":
    main()
