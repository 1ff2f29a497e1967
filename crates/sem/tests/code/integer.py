#!/usr/bin/env python3
"""Records what ptxas makes of carry chains and of 64-bit bit fields: `integer.py PTXAS NVDISASM COUNT`.

ptxas 13.5 writes the extended-precision instructions as sums with a predicate for CC.CF, and `bfe` and `bfi` on 64 bits as
shifts and masks. This assembles random chains of the former, of one width and all kinds mixed, and the latter; machine.py
computes what the code for sm_75 stores. A line of the output is the instructions, with `; ` between them, `:`, the values of
a, b and c in hexadecimal, `=` and those of d0, d1 and so on.
"""
import random
import sys

from machine import Machine, Unknown, listings

random.seed(19)
VALUES = 10
EDGES = {
    32: [0, 1, 2, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF],
    64: [0, 1, 2, 0xFFFFFFFF, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 2, (1 << 64) - 1],
}
PLACES = [0, 1, 7, 8, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 257, 264, 287, 320, 511, 0x7FFFFFFF, 0x80000000,
          0xFFFFFFFF]


def pick(choices):
    return random.choice(choices)


def chain():
    width = pick([32, 64])
    texts = []
    for n in range(random.randrange(2, 6)):
        source = lambda: pick(["a", "b", "c", "0", *(f"d{i}" for i in range(n))])
        opcode = pick(["add", "sub", "sub", "mad.lo", "mad.hi"])
        opcode, part = opcode[:3], opcode[3:]
        carries = ".cc" if n == 0 or random.random() < 0.3 else pick(["c", "c.cc"])
        name = f"{opcode}{part}{carries}" if carries == ".cc" else f"{opcode}c{part}{carries[1:]}"
        sources = [source() for _ in ("abc" if part else "ab")]
        texts.append(f"{name}.{pick('us')}{width} d{n}, {', '.join(sources)}")
    return width, texts


def field():
    if random.random() < 0.5:
        return 64, [f"bfe.{pick('us')}64 d0, a, b, c"]
    return 64, ["bfi.b64 d0, a, 0, b, c" if random.random() < 0.3 else "bfi.b64 d0, a, -1, b, c"]


def kernel(width, texts):
    small = texts[0].startswith("bf")
    registers = ".reg .b64 a; .reg .b32 b, c;" if small else f".reg .b{width} a, b, c;"
    loads = f"ld.param.b{width} a, [pa];"
    loads += "".join(f"ld.param.b{32 if small else width} {x}, [p{x}];" for x in "bc")
    results = "".join(f"st.global.b{width} [ptr+{8 * i}], d{i};" for i in range(len(texts)))
    body = f"{registers} .reg .b{width} d<{len(texts)}>; {loads}\n{'; '.join(texts)};\n{results}"
    return ".param .u64 pa, .param .u64 pb, .param .u64 pc", body


def value(width, texts, place):
    if texts[0].startswith("bf") and place > 0:
        return pick(PLACES) if random.random() < 0.8 else random.getrandbits(pick([6, 9, 32]))
    return pick(EDGES[width]) if random.random() < 0.5 else random.getrandbits(width)


def main():
    ptxas, nvdisasm, wanted = sys.argv[1], sys.argv[2], int(sys.argv[3])
    lines, unknown = {}, {}
    while len(lines) < wanted:
        batch = [pick([chain, chain, chain, field])() for _ in range(500)]
        for (width, texts), code in zip(batch, listings(ptxas, nvdisasm, [kernel(*what) for what in batch])):
            try:
                for _ in range(VALUES):
                    values = [value(width, texts, place) for place in range(3)]
                    words = [word for x in values for word in (x & 0xFFFFFFFF, x >> 32)]
                    stored = Machine(words).run(code)
                    if width == 64:
                        stored = [low | high << 32 for low, high in zip(stored[::2], stored[1::2])]
                    numbers = " ".join(f"{x:x}" for x in values), " ".join(f"{x:x}" for x in stored)
                    lines[f"{'; '.join(texts)} : {numbers[0]} = {numbers[1]}"] = None
            except Unknown as what:
                unknown[str(what)] = unknown.get(str(what), 0) + 1
    print("\n".join(list(lines)[:wanted]))
    if unknown:
        print(f"not computed: {unknown}", file=sys.stderr)


main()
