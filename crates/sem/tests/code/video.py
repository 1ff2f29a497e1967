#!/usr/bin/env python3
"""Records what ptxas makes of video instructions: `video.py PTXAS NVDISASM COUNT`.

No GPU since Maxwell has these instructions: ptxas 13.5 writes each as a sequence of plain integer instructions. This
assembles random ones for sm_75, reads the listing of nvdisasm, and computes with those few instructions (machine.py) what the
sequence returns for edge values and random bits. A line of the output is an instruction with the names of its operands,
`:`, the values of a, b and c in hexadecimal, `=` and that of d.
"""
import random
import sys

from machine import MASK, Machine, Unknown, listings

random.seed(18)
VALUES = 10
EDGES = [0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0x80008000, 0x80808080, MASK, 32, 31,
         0x7F80FF01, 0x7FFF8000, 33]
COMPARISONS = "eq ne lt le gt ge".split()
BYTE_MASKS = ["b" + "".join(str(i) for i in (3, 2, 1, 0) if n >> i & 1) for n in range(1, 16)]


def pick(choices):
    return random.choice(choices)


def ty():
    return pick(["u32", "s32"])


def part():
    return pick(["", "", ".b0", ".b1", ".b2", ".b3", ".h0", ".h1"])


def scalar():
    opcode = pick("vadd vsub vabsdiff vmin vmax vshl vshr vset".split())
    if opcode == "vset":
        name = f"vset.{ty()}.{ty()}.{pick(COMPARISONS)}"
    elif opcode in ("vshl", "vshr"):
        name = f"{opcode}.{ty()}.{ty()}.u32{pick(['', '.sat'])}{pick(['.clamp', '.wrap'])}"
    else:
        name = f"{opcode}.{ty()}.{ty()}.{ty()}{pick(['', '.sat'])}"
    sources = f"a{part()}, b{part()}"
    return pick([
        f"{name} d, {sources}",
        f"{name} d{part()}, {sources}, c",
        f"{name}.{pick(['add', 'min', 'max'])} d, {sources}, c",
    ])


def product():
    a, b, c = pick([("a", "b", "c"), ("-a", "b", "c"), ("a", "-b", "c"), ("a", "b", "-c"), ("-a", "-b", "c")])
    po = pick(["", ".po"]) if "-" not in a + b + c else ""
    scale, sat = pick(["", ".shr7", ".shr15"]), pick(["", ".sat"])
    return f"vmad.{ty()}.{ty()}.{ty()}{po}{sat}{scale} d, {a}{part()}, {b}{part()}, {c}"


def packed():
    n = pick("24")
    opcode = pick("vadd vsub vavrg vabsdiff vmin vmax vset".split())
    if opcode == "vset":
        name = f"vset{n}.{ty()}.{ty()}.{pick(COMPARISONS)}{pick(['', '.add'])}"
    else:
        name = f"{opcode}{n}.{ty()}.{ty()}.{ty()}{pick(['', '.sat', '.add'])}"
    if n == "2":
        mask = pick(["", ".h0", ".h1", ".h10"])
        sources = [pick(["", f".h{random.randrange(4)}{random.randrange(4)}"]) for _ in "ab"]
    else:
        mask = pick(["", "." + pick(BYTE_MASKS)])
        sources = [pick(["", ".b" + "".join(str(random.randrange(8)) for _ in range(4))]) for _ in "ab"]
        # ptxas reads that one as a type.
        sources = [source.replace(".b1024", "") for source in sources]
    return f"{name} d{mask}, a{sources[0]}, b{sources[1]}, c"


def body(instruction):
    return f""".reg .b32 a, b, c, d;
ld.param.u32 a, [pa]; ld.param.u32 b, [pb]; ld.param.u32 c, [pc];
{instruction};
st.global.u32 [ptr], d;"""


def main():
    ptxas, nvdisasm, wanted = sys.argv[1], sys.argv[2], int(sys.argv[3])
    seen, unknown = {}, {}
    while len(seen) * VALUES < wanted:
        batch = [pick([scalar, scalar, product, packed, packed])() for _ in range(500)]
        batch = [text for text in dict.fromkeys(batch) if text not in seen]
        kernels = [(".param .u32 pa, .param .u32 pb, .param .u32 pc", body(text)) for text in batch]
        for text, code in zip(batch, listings(ptxas, nvdisasm, kernels)):
            lines = []
            try:
                for _ in range(VALUES):
                    a, b, c = (pick(EDGES) if random.random() < 0.4 else random.getrandbits(32) for _ in "abc")
                    lines.append(f"{text} : {a:08x} {b:08x} {c:08x} = {Machine([a, b, c]).run(code)[0]:08x}")
            except Unknown as what:
                unknown[str(what)] = unknown.get(str(what), 0) + 1
                continue
            seen[text] = lines
    lines = [line for lines in seen.values() for line in lines]
    print("\n".join(lines[:wanted]))
    if unknown:
        print(f"not computed: {unknown}", file=sys.stderr)


main()
