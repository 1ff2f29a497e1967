#!/usr/bin/env python3
"""Records what ptxas makes of video instructions: `record.py PTXAS NVDISASM COUNT`.

No GPU since Maxwell has these instructions: ptxas 13.5 writes each as a sequence of plain integer instructions. This
assembles random ones for sm_75, reads the listing of nvdisasm, and computes with those few instructions (`Machine`) what the
sequence returns for edge values and random bits. A line of the output is an instruction with the names of its operands,
`:`, the values of a, b and c in hexadecimal, `=` and that of d.
"""
import random
import re
import subprocess
import sys
import tempfile

random.seed(18)
VALUES = 10
MASK = 0xFFFFFFFF
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


def signed(x, bits=32):
    return x - (1 << bits) if x >> (bits - 1) & 1 else x


class Unknown(Exception):
    """An instruction that `Machine` does not know."""


class Machine:
    """Computes with the integer instructions of sm_75, as far as ptxas needs them here."""

    def __init__(self, a, b, c):
        self.registers = {"RZ": 0, "URZ": 0}
        self.predicates = {"PT": True, "UPT": True}
        self.constants = {0x168: a, 0x16C: b, 0x170: c}

    def predicate(self, text):
        return self.predicates[text.lstrip("!")] != text.startswith("!")

    def number(self, text, complement=False):
        """The bits of an operand; with `complement`, of `-x` those of `~x`, and 1 to be added."""
        extra = 0
        if text.startswith("-") and not text.startswith("-0x") and complement:
            text, extra = "~" + text[1:], 1
        if text.startswith("~"):
            value = ~self.number(text[1:])
        elif text.startswith("-"):
            value = -self.number(text[1:])
        elif text.startswith("0x"):
            value = int(text, 16)
        elif m := re.fullmatch(r"c\[0x0\]\[(0x\w+)\]", text):
            value = self.constants.get(int(m[1], 16), 0)
        else:
            value = self.registers[text]
        return (value & MASK, extra) if complement else value & MASK

    def pair(self, text):
        if text in ("RZ", "URZ"):
            return 0
        name, index = re.fullmatch(r"(U?R)(\d+)", text).groups()
        return self.registers[text] | self.registers[f"{name}{int(index) + 1}"] << 32

    def set_pair(self, text, value):
        name, index = re.fullmatch(r"(U?R)(\d+)", text).groups()
        self.registers[text], self.registers[f"{name}{int(index) + 1}"] = value & MASK, value >> 32 & MASK

    def step(self, text):
        if m := re.match(r"@(!?U?P\w+) (.*)", text):
            if not self.predicate(m[1]):
                return
            text = m[2]
        name, _, rest = text.partition(" ")
        operands = [o.strip().removesuffix(".reuse") for o in rest.split(",")]
        words = name.split(".")
        opcode, flags = words[0].removeprefix("U"), words[1:]
        result = self.compute(opcode, flags, operands)
        if result is not None:
            self.registers[operands[0]] = result & MASK

    def compute(self, opcode, flags, o):
        n = self.number
        if opcode == "LDC":
            address = int(re.fullmatch(r"c\[0x0\]\[(0x\w+)\]", o[1])[1], 16)
            if flags == ["64"]:
                return self.set_pair(o[0], self.constants.get(address, 0) | self.constants.get(address + 4, 0) << 32)
            return n(o[1])
        if opcode == "MOV":
            return n(o[1])
        if opcode == "IABS":
            return abs(signed(n(o[1])))
        if opcode == "SEL":
            return n(o[1]) if self.predicate(o[3]) else n(o[2])
        if opcode == "IMNMX":
            read = n if flags == ["U32"] else lambda x: signed(n(x))
            return (min if self.predicate(o[3]) else max)(read(o[1]), read(o[2]))
        if opcode == "I2I" and flags[1:] == ["S32", "SAT"]:
            bits = int(flags[0][1:])
            low, high = (0, (1 << bits) - 1) if flags[0][0] == "U" else (-1 << (bits - 1), (1 << (bits - 1)) - 1)
            return max(low, min(high, signed(n(o[1]))))
        if opcode == "LOP3" and o[5] in ("!PT", "!UPT"):
            a, b, c, table = n(o[1]), n(o[2]), n(o[3]), int(o[4], 16)
            bits = (((a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1, i) for i in range(32))
            return sum((table >> row & 1) << i for row, i in bits)
        if opcode == "PRMT" and not flags:
            source, selector = n(o[1]) | n(o[3]) << 32, n(o[2])
            result = 0
            for i in range(4):
                nibble = selector >> (4 * i) & 15
                byte = source >> (8 * (nibble & 7)) & 255
                if nibble & 8:
                    byte = 255 if byte & 128 else 0
                result |= byte << (8 * i)
            return result
        if opcode == "ISETP":
            return self.compare(flags, o)
        if opcode == "SHF":
            return self.shift(flags, o)
        if opcode == "LEA" and flags[0] == "HI":
            wide = signed(n(o[1])) if "SX32" in flags else n(o[1]) | n(o[3]) << 32
            rest = o[3:] if "SX32" in flags else o[4:]
            carry = self.predicate(rest[1]) if "X" in flags else 0
            return n(o[2]) + ((wide << int(rest[0], 16)) >> 32) + carry
        if opcode == "IADD3":
            carries = []
            while re.fullmatch(r"U?P\w", o[1 + len(carries)]):
                carries.append(o[1 + len(carries)])
            terms = o[1 + len(carries):]
            total = 0
            for term in terms[:3]:
                value, extra = (n(term), 0) if "X" in flags else n(term, complement=True)
                total += value + extra
            total += sum(self.predicate(term) for term in terms[3:])
            for i, carry in enumerate(carries):
                self.predicates[carry] = total >> 32 > i
            return total
        if opcode == "IMAD":
            if flags and flags[0] == "WIDE":
                read = n if "U32" in flags else lambda x: signed(n(x))
                return self.set_pair(o[0], read(o[1]) * read(o[2]) + self.pair(o[3]))
            if flags and flags[0] not in ("MOV", "IADD", "U32", "X", "SHL"):
                raise Unknown(opcode, flags)
            return n(o[1]) * n(o[2]) + n(o[3]) + (self.predicate(o[4]) if flags[:1] == ["X"] else 0)
        raise Unknown(opcode, flags)

    def compare(self, flags, o):
        read = self.number if "U32" in flags else lambda x: signed(self.number(x))
        a, b = read(o[2]), read(o[3])
        holds = {"EQ": a == b, "NE": a != b, "LT": a < b, "LE": a <= b, "GT": a > b, "GE": a >= b}[flags[0]]
        if "EX" in flags:
            low = self.predicate(o[5])
            holds = {"EQ": a == b and low, "NE": a != b or low}.get(
                flags[0], low if a == b else (a < b) == (flags[0] in ("LT", "LE")))
        if "AND" not in flags or not o[1].endswith("PT"):
            raise Unknown("ISETP", flags)
        self.predicates[o[0]] = holds and self.predicate(o[4])

    def shift(self, flags, o):
        low, amount, high = self.number(o[1]), self.number(o[2]), self.number(o[3])
        wide = high << 32 | low
        if flags[0] == "L":
            amount = min(amount, 64 if "U64" in flags else 32)
            return wide << amount >> (32 if "HI" in flags else 0)
        if flags[1] in ("S32", "S64"):
            wide = signed(wide, 64)
        amount = min(amount, 64 if flags[1].endswith("64") else 32)
        return wide >> amount >> (32 if "HI" in flags else 0)

    def run(self, code):
        for text in code:
            if text.startswith("STG"):
                return self.registers[text.split(", ")[1]]
            if not re.match(r"NOP|ULDC.64 \w+, c\[0x0\]\[0x160\]|(IMAD.MOV.U32|MOV) R1,", text):
                self.step(text)
        raise Unknown("no store")


def listings(ptxas, nvdisasm, instructions):
    """The code of each instruction between the loads of its operands and the store of its result."""
    source = ".version 8.8\n.target sm_75\n.address_size 64\n"
    for i, text in enumerate(instructions):
        source += f""".visible .entry k{i}(.param .u64 p, .param .u32 pa, .param .u32 pb, .param .u32 pc) {{
.reg .b32 a, b, c, d; .reg .b64 ptr;
ld.param.u64 ptr, [p]; ld.param.u32 a, [pa]; ld.param.u32 b, [pb]; ld.param.u32 c, [pc];
{text};
st.global.u32 [ptr], d;
ret; }}
"""
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/x.ptx", "w") as f:
            f.write(source)
        subprocess.run([ptxas, "-arch", "sm_75", f"{folder}/x.ptx", "-o", f"{folder}/x.cubin"], check=True)
        listing = subprocess.run([nvdisasm, f"{folder}/x.cubin"], capture_output=True, text=True, check=True).stdout
    code, current = {}, None
    for line in listing.split("\n"):
        if m := re.match(r"\s*\.section\s+\.text\.k(\d+)", line):
            current = code.setdefault(int(m[1]), [])
        elif m := re.search(r"/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;", line):
            current.append(m[1])
    return [code[i] for i in range(len(instructions))]


def main():
    ptxas, nvdisasm, wanted = sys.argv[1], sys.argv[2], int(sys.argv[3])
    seen, unknown = {}, {}
    while len(seen) * VALUES < wanted:
        batch = [pick([scalar, scalar, product, packed, packed])() for _ in range(500)]
        batch = [text for text in dict.fromkeys(batch) if text not in seen]
        for text, code in zip(batch, listings(ptxas, nvdisasm, batch)):
            lines = []
            try:
                for _ in range(VALUES):
                    a, b, c = (pick(EDGES) if random.random() < 0.4 else random.getrandbits(32) for _ in "abc")
                    lines.append(f"{text} : {a:08x} {b:08x} {c:08x} = {Machine(a, b, c).run(code):08x}")
            except Unknown as what:
                unknown[str(what)] = unknown.get(str(what), 0) + 1
                continue
            seen[text] = lines
    lines = [line for lines in seen.values() for line in lines]
    print("\n".join(lines[:wanted]))
    if unknown:
        print(f"not computed: {unknown}", file=sys.stderr)


main()
