"""Writes the kernels of `ldmatrix` and `stmatrix` on bytes beside this folder, with the results that must come out.

    python3 tests/run/reference/rows.py

Rows of 16 bytes lie in shared memory in a random order, and every lane names one. What a thread holds of a matrix is
written down from the manual's "ldmatrix" and "stmatrix", and from CUTLASS (copy_traits_sm100.hpp) where the manual has a figure.
"""

from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent.parent


def listing(values):
    return ", ".join(str(int(v)) for v in values)


def expected(name, values):
    return "".join(f"// OUT {name}: {' '.join(str(int(v)) for v in values[at : at + 32])}\n" for at in range(0, len(values), 32))


def unpack(row, bits):
    """The elements of 16 bytes: 16 of so many bits, from the lowest on."""
    whole = int.from_bytes(bytes(row.tolist()), "little")
    return [whole >> bits * i & (1 << bits) - 1 for i in range(16)]


def loads():
    rng = np.random.default_rng(1)
    rows, order = rng.integers(0, 256, (32, 16)), rng.permutation(32)
    memory = np.zeros((32, 16), int)
    memory[order] = rows
    # Mnemonic, bits of an element, matrices, rows of one.
    forms = [
        ("m16n16.x1.trans.shared.b8", 8, 1, 16),
        ("m16n16.x2.trans.shared::cta.b8", 8, 2, 16),
        ("m16n16.x1.trans.shared.b8x16.b6x16_p32", 6, 1, 16),
        ("m16n16.x2.trans.shared.b8x16.b4x16_p64", 4, 2, 16),
        ("m8n16.x1.b8x16.b4x16_p64", 4, 1, 8),
        ("m8n16.x2.shared.b8x16.b6x16_p32", 6, 2, 8),
        ("m8n16.x4.shared.b8x16.b4x16_p64", 4, 4, 8),
    ]
    out, code, names = [], "", 0
    for mnemonic, bits, count, size in forms:
        registers = count * size // 8
        vector = ", ".join(f"%r{names + i}" for i in range(registers))
        address = "%generic" if ".shared" not in mnemonic else "%at"
        code += f"    ldmatrix.sync.aligned.{mnemonic} {{{vector}}}, [{address}];\n"
        for register in range(registers):
            code += f"    st.global.b32 [%out+{128 * (names + register)}], %r{names + register};\n"
            for lane in range(32):
                four = range(lane % 4 * 4, lane % 4 * 4 + 4)
                if size == 16:
                    # Memory holds the columns: four of them, in row g or g + 8.
                    first, row = register // 2 * 16, lane // 4 + register % 2 * 8
                    out += [unpack(rows[first + column], bits)[row] for column in four]
                else:
                    out += [unpack(rows[register * 8 + lane // 4], bits)[column] for column in four]
        names += registers
    text = "// ldmatrix on elements of 8, 6 and 4 bits, whose rows lie in a random order: a register of all lanes after the other, by bytes.\n"
    text += "// Written by reference/rows.py.\n//\n"
    text += f"// RUN: --block 32 --arg u8[{names}x128]\n{expected(0, out)}\n.version 8.7\n.target sm_120a\n.address_size 64\n\n"
    text += f".const .align 16 .b8 rows[512] = {{{listing(memory.ravel())}}};\n.const .b8 order[32] = {{{listing(order)}}};\n"
    text += f"""
.visible .entry test(.param .u64 out)
{{
    .reg .b32 %lane, %at, %r<{names}>;
    .reg .b64 %out, %from, %generic;
    .reg .b32 %v<4>;
    .shared .align 16 .b8 memory[512];
    mov.u32 %lane, %tid.x;
    ld.param.u64 %out, [out];
    mad.wide.u32 %out, %lane, 4, %out;
    mov.u64 %from, rows;
    mad.wide.u32 %from, %lane, 16, %from;
    ld.const.v4.b32 {{%v0, %v1, %v2, %v3}}, [%from];
    mov.u32 %at, memory;
    mad.lo.u32 %at, %lane, 16, %at;
    st.shared.v4.b32 [%at], {{%v0, %v1, %v2, %v3}};
    bar.warp.sync 0xffffffff;
    cvt.u64.u32 %from, %lane;
    ld.const.u8 %v0, [order];
    mov.u64 %generic, order;
    add.u64 %from, %from, %generic;
    ld.const.u8 %v0, [%from];
    mov.u32 %at, memory;
    mad.lo.u32 %at, %v0, 16, %at;
    cvt.u64.u32 %generic, %at;
    cvta.shared.u64 %generic, %generic;
{code}    ret;
}}
"""
    (HERE / "ldmatrix_bytes.ptx").write_text(text.replace("    ld.const.u8 %v0, [order];\n", ""))


def stores():
    rng = np.random.default_rng(2)
    words, order = rng.integers(0, 2**32, (32, 4)), rng.permutation(32)
    out = []
    code = ""
    for number, count in enumerate((1, 2, 4)):
        # CUTLASS gives the place in bits: 256 and 8 for the thread's number in its group of four and for the group, 128 and 64 for the
        # lower and the upper bit of the byte's number, 1024 for the register. A row has 128.
        rows = np.zeros((32, 16), int)
        for lane in range(32):
            for register in range(count):
                for byte in range(4):
                    bit = lane % 4 * 256 + lane // 4 * 8 + (byte & 1) * 128 + (byte >> 1) * 64 + register * 1024
                    rows[bit // 128, bit % 128 // 8] = int(words[lane, register]) >> 8 * byte & 0xFF
        memory = np.zeros((32, 16), int)
        memory[order] = rows
        out += memory.ravel().tolist()
        vector = ", ".join(f"%v{i}" for i in range(count))
        code += f"""    st.shared.v4.b32 [%own], {{0, 0, 0, 0}};
    bar.warp.sync 0xffffffff;
    stmatrix.sync.aligned.m16n8.x{count}.trans.shared.b8 [%at], {{{vector}}};
    bar.warp.sync 0xffffffff;
    ld.shared.v4.b32 {{%r0, %r1, %r2, %r3}}, [%own];
    st.global.v4.b32 [%out+{512 * number}], {{%r0, %r1, %r2, %r3}};
    bar.warp.sync 0xffffffff;
"""
    text = "// stmatrix on bytes: one, two and four matrices of 16 x 8, whose columns become rows that lie in a random order.\n"
    text += "// Written by reference/rows.py.\n//\n"
    text += f"// RUN: --block 32 --arg u8[3x512]\n{expected(0, out)}\n.version 8.7\n.target sm_120a\n.address_size 64\n\n"
    text += f".const .align 16 .b32 words[128] = {{{listing(words.ravel())}}};\n.const .b8 order[32] = {{{listing(order)}}};\n"
    text += f"""
.visible .entry test(.param .u64 out)
{{
    .reg .b32 %lane, %at, %own, %row, %v<4>, %r<4>;
    .reg .b64 %out, %from, %index;
    .shared .align 16 .b8 memory[512];
    mov.u32 %lane, %tid.x;
    ld.param.u64 %out, [out];
    mad.wide.u32 %out, %lane, 16, %out;
    mov.u64 %from, words;
    mad.wide.u32 %from, %lane, 16, %from;
    ld.const.v4.b32 {{%v0, %v1, %v2, %v3}}, [%from];
    mov.u64 %from, order;
    cvt.u64.u32 %index, %lane;
    add.u64 %from, %from, %index;
    ld.const.u8 %row, [%from];
    mov.u32 %at, memory;
    mad.lo.u32 %own, %lane, 16, %at;
    mad.lo.u32 %at, %row, 16, %at;
{code}    ret;
}}
"""
    (HERE / "stmatrix_bytes.ptx").write_text(text)


loads()
stores()
