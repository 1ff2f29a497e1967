"""Computes what a listing of sm_75 code computes: the few integer instructions that ptxas needs here (`Machine`)."""
import re
import subprocess
import tempfile

MASK = 0xFFFFFFFF
# Where the parameters of a kernel begin in constant bank 0.
PARAMETERS = 0x160


def signed(x, bits=32):
    return x - (1 << bits) if x >> (bits - 1) & 1 else x


class Unknown(Exception):
    """An instruction that `Machine` does not know."""


class Machine:
    """Computes with the integer instructions of sm_75, as far as ptxas needs them here."""

    def __init__(self, words):
        """A kernel whose parameters are the address of its results, and these words."""
        self.registers = {"RZ": 0, "URZ": 0}
        self.predicates = {"PT": True, "UPT": True}
        self.constants = {PARAMETERS + 8 + 4 * i: word for i, word in enumerate(words)}

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
        if m := re.fullmatch(r"c\[0x0\]\[(0x\w+)\]", text):
            address = int(m[1], 16)
            return self.constants.get(address, 0) | self.constants.get(address + 4, 0) << 32
        if not (m := re.fullmatch(r"(U?R)(\d+)", text)):
            raise Unknown("pair", text)
        name, index = m.groups()
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
        if result is not None and operands[0] not in ("RZ", "URZ"):
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
            if flags and flags[0] in ("WIDE", "HI"):
                read = n if "U32" in flags else lambda x: signed(n(x))
                out = o.pop(1) if re.fullmatch(r"U?P\w", o[1]) else None
                # Both add a pair of registers; `HI` is the upper word of that sum.
                total = (read(o[1]) * read(o[2]) & (1 << 64) - 1) + self.pair(o[3])
                total += self.predicate(o[4]) if "X" in flags else 0
                if out:
                    self.predicates[out] = total >> 64 != 0
                if flags[0] == "HI":
                    return total >> 32
                return self.set_pair(o[0], total)
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
        """The words that the code stores, in the order of their addresses."""
        stored = {}
        for text in code:
            if text == "EXIT":
                return [stored[offset] for offset in sorted(stored)]
            if m := re.match(r"STG\.E(\.64)?\S* \[UR\d+(?:\+(0x\w+))?\], (\w+)", text):
                offset, value = int(m[2] or "0", 16), self.pair(m[3]) if m[1] else self.registers[m[3]]
                stored[offset] = value & MASK
                if m[1]:
                    stored[offset + 4] = value >> 32
            elif not re.match(r"NOP|ULDC.64 \w+, c\[0x0\]\[0x160\]|(IMAD.MOV.U32|MOV) R1,", text):
                self.step(text)
        raise Unknown("no end")


def listings(ptxas, nvdisasm, kernels):
    """The code of each kernel, given as its parameters and its body; the address of its results is `ptr`."""
    source = ".version 8.8\n.target sm_75\n.address_size 64\n"
    for i, (parameters, body) in enumerate(kernels):
        source += f""".visible .entry k{i}(.param .u64 p, {parameters}) {{
.reg .b64 ptr; ld.param.u64 ptr, [p];
{body}
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
    return [code[i] for i in range(len(kernels))]
