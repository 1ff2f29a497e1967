#!/usr/bin/env python3
"""Records what libnvvm folds: `libnvvm.py LIBNVVM COUNT > vectors.txt`.

LLVM inside libnvvm evaluates comparisons of constants (`fcmp`, `icmp`) and constrained arithmetic
(`llvm.experimental.constrained.*`) while it compiles. Each vector is such an expression, stored; the PTX that comes out
holds the result as a constant. A line of the output is the PTX instruction that means the same, its operands and the
result in hexadecimal, as wide as their registers. Of `setp` the result is p, and of packed halves q above it.

What stands for what:
  CmpOps               the predicates of fcmp and icmp: eq is oeq, ne is one, equ is ueq, num is ord, ...
  BoolOps              and, or, xor of i1
  .ftz                 the attribute "denormal-fp-math"="preserve-sign,preserve-sign"
  set                  sext to an integer, uitofp to a floating-point type
  add, sub, fma mixed  fpext to float, then constrained.fadd, fsub or fma with the rounding mode
  .sat                 minnum(maxnum(x, 0), 1)
A NaN result of arithmetic is written as LLVM has it; PTX instructions have one NaN instead.
"""
import ctypes
import random
import re
import sys

HEADER = """target datalayout = "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-\
f64:64:64-v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"
target triple = "nvptx64-nvidia-cuda"
declare float @llvm.experimental.constrained.fadd.f32(float, float, metadata, metadata)
declare float @llvm.experimental.constrained.fsub.f32(float, float, metadata, metadata)
declare float @llvm.experimental.constrained.fma.f32(float, float, float, metadata, metadata)
declare float @llvm.maxnum.f32(float, float)
declare float @llvm.minnum.f32(float, float)
!nvvmir.version = !{!0}
!0 = !{i32 2, i32 0}
"""
FLOAT_OPS = {"eq": "oeq", "ne": "one", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "equ": "ueq", "neu": "une",
             "ltu": "ult", "leu": "ule", "gtu": "ugt", "geu": "uge", "num": "ord", "nan": "uno"}
INTEGER_OPS = {"b": {"eq": "eq", "ne": "ne"},
               "s": {"eq": "eq", "ne": "ne", "lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge"},
               "u": {"eq": "eq", "ne": "ne", "lt": "ult", "le": "ule", "gt": "ugt", "ge": "uge",
                     "lo": "ult", "ls": "ule", "hi": "ugt", "hs": "uge"}}
ROUNDINGS = {"rn": "tonearest", "rz": "towardzero", "rm": "downward", "rp": "upward"}
LLVM_TYPE = {"f16": "half", "bf16": "bfloat", "f32": "float", "f64": "double"}
# Exponent and fraction bits.
FORMAT = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}


def width(t):
    """Bits of a type."""
    return 1 if t == "pred" else 32 if t.endswith("x2") else int(t.lstrip("bfsu"))


def element(t):
    """The type of a lane."""
    return t.removesuffix("x2")


def llvm(t):
    """The name of a type in LLVM."""
    return LLVM_TYPE.get(t, f"i{width(t)}")


def value(t):
    """A constant of a type: an edge with either sign, or random bits."""
    if t == "pred":
        return random.randrange(2)
    if t.endswith("x2"):
        return value(element(t)) << 16 | value(element(t))
    bits = width(t)
    if t not in FORMAT:
        edges = [0, 1, 2, (1 << bits - 1) - 1, 1 << bits - 1, (1 << bits) - 1]
        return random.choice(edges) if random.random() < 0.5 else random.getrandbits(bits)
    exponent, fraction = FORMAT[t]
    infinity, one = ((1 << exponent) - 1) << fraction, ((1 << exponent - 1) - 1) << fraction
    quiet = 1 << fraction - 1
    sign = random.randrange(2) << bits - 1
    kind = random.random()
    if kind < 0.1:
        return sign | infinity | random.choice([quiet, quiet | 1, (1 << fraction) - 1])
    if kind < 0.2:
        return sign | infinity | random.choice([1, quiet - 1, random.randrange(1, quiet)])
    if kind < 0.6:
        normal = 1 << fraction
        return sign | random.choice([0, 0, 1, normal - 1, normal, normal + 1, one - 1, one, one, one + 1, infinity - 1,
                                     infinity, infinity, random.randrange(1, normal)])
    if kind < 0.8:
        # Near one, so that sums are not just the larger operand.
        return sign | (one + (random.randrange(-12, 12) << fraction)) & infinity | random.getrandbits(fraction)
    return random.getrandbits(bits)


def pair(t):
    """Two operands to compare, often close to each other."""
    a = value(t)
    b = random.choice([a, a, a ^ 1 << width(t) - 1, a + 1, a - 1]) % (1 << width(t)) if random.random() < 0.4 else value(t)
    return a, b


def literal(t, bits):
    """The constant as an operand: floating-point bits need a hexadecimal form of their own."""
    if t == "pred":
        return "true" if bits else "false"
    if t == "f16":
        return f"0xH{bits:04X}"
    if t == "bf16":
        return f"0xR{bits:04X}"
    if t == "f64":
        return f"0x{bits:016X}"
    return str(bits)


class Module:
    """Functions that store what they compute."""

    def __init__(self):
        self.lines = {False: [], True: []}
        self.order = {False: [], True: []}
        self.names = 0

    def name(self):
        """A fresh value."""
        self.names += 1
        return f"%v{self.names}"

    def let(self, ftz, expression):
        """A value defined by an expression."""
        name = self.name()
        self.lines[ftz].append(f"  {name} = {expression}")
        return name

    def constant(self, ftz, t, bits):
        """A value of a type; of float a cast of its bits, since LLVM writes float constants as double."""
        return self.let(ftz, f"bitcast i32 {bits} to float") if t == "f32" else literal(t, bits)

    def store(self, ftz, t, name, key):
        """Stores a value as an answer, or a part of it: (vector, shift)."""
        self.lines[ftz].append(f"  store volatile {t} {name}, ptr addrspace(1) %p")
        self.order[ftz].append(key)

    def text(self):
        """The module."""
        text = HEADER
        for ftz, lines in self.lines.items():
            attributes = '"denormal-fp-math"="preserve-sign,preserve-sign" ' if ftz else ""
            text += f"define void @k{int(ftz)}(ptr addrspace(1) %p) {attributes}{{\n"
            text += "\n".join(lines) + "\n  ret void\n}\n"
        return text


def compare(module, index, parts, operands):
    """One set or setp."""
    ftz, stype = "ftz" in parts, parts[-1]
    t, lanes = element(stype), 2 if stype.endswith("x2") else 1
    bits = width(t)
    op = next(p for p in parts[1:] if p in FLOAT_OPS or p in ("lo", "ls", "hi", "hs"))
    boolean = next((p for p in parts if p in ("and", "or", "xor")), None)
    for lane in range(lanes):
        a, b = (module.constant(ftz, t, x >> lane * bits & (1 << bits) - 1) for x in operands[:2])
        if t in FORMAT:
            result = module.let(ftz, f"fcmp {FLOAT_OPS[op]} {llvm(t)} {a}, {b}")
        else:
            result = module.let(ftz, f"icmp {INTEGER_OPS[t[0]][op]} {llvm(t)} {a}, {b}")
        if boolean:
            result = module.let(ftz, f"{boolean} i1 {result}, {literal('pred', operands[2])}")
        if parts[0] == "setp":
            module.store(ftz, "i32", module.let(ftz, f"zext i1 {result} to i32"), (index, lane))
            continue
        dtype = element(parts[-2])
        cast = "uitofp" if dtype in FORMAT else "sext"
        d = llvm(dtype) if lanes == 1 or dtype in FORMAT else "i16"
        module.store(ftz, d, module.let(ftz, f"{cast} i1 {result} to {d}"), (index, 16 * lane))


def mixed(module, index, parts, operands):
    """One add, sub or fma of .f32 and halves."""
    t = parts[-1]
    halves = [module.let(False, f"fpext {llvm(t)} {literal(t, x)} to float") for x in operands[:-1]]
    sources = ", ".join(f"float {x}" for x in [*halves, module.constant(False, "f32", operands[-1])])
    function = {"add": "fadd", "sub": "fsub"}.get(parts[0], parts[0])
    rounding = next((ROUNDINGS[p] for p in parts if p in ROUNDINGS), "tonearest")
    result = module.let(False, f"call float @llvm.experimental.constrained.{function}.f32({sources}, "
                        f'metadata !"round.{rounding}", metadata !"fpexcept.ignore")')
    if "sat" in parts:
        result = module.let(False, f"call float @llvm.maxnum.f32(float {result}, float 0.0)")
        result = module.let(False, f"call float @llvm.minnum.f32(float {result}, float 1.0)")
    module.store(False, "float", result, (index, 0))


def forms():
    """(instruction, the types of its sources)"""
    for stype in ["f16", "f16x2", "bf16", "bf16x2"]:
        one = element(stype)
        dtypes = {"f16": ["u16", "s16", "u32", "s32", "f16", "bf16"], "bf16": ["u16", "s16", "u32", "s32", "bf16"],
                  "f16x2": ["u32", "s32", "f16x2"], "bf16x2": ["u32", "s32", "bf16x2"]}[stype]
        for op in FLOAT_OPS:
            for boolean in ["", ".and", ".or", ".xor"]:
                sources = [stype, stype] + (["pred"] if boolean else [])
                for ftz in ["", ".ftz"] if one == "f16" else [""]:
                    # Several times as often as each set.
                    for _ in range(4):
                        yield f"setp.{op}{boolean}{ftz}.{stype}", sources
                    for dtype in dtypes:
                        if not ftz or dtype != "bf16":
                            yield f"set.{op}{boolean}{ftz}.{dtype}.{stype}", sources
    for dtype in ["f16", "bf16"]:
        for stype in "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64".split():
            for op in FLOAT_OPS if stype in FORMAT else INTEGER_OPS[stype[0]]:
                for boolean in ["", ".and", ".or", ".xor"]:
                    for ftz in ["", ".ftz"] if (dtype, stype) == ("f16", "f32") else [""]:
                        yield f"set.{op}{boolean}{ftz}.{dtype}.{stype}", [stype, stype] + (["pred"] if boolean else [])


def mixed_forms():
    """The same of mixed precision."""
    for t in ["f16", "bf16"]:
        for sat in ["", ".sat"]:
            for rounding in ["", ".rn", ".rz", ".rm", ".rp"]:
                yield f"add{rounding}{sat}.f32.{t}", [t, "f32"]
                yield f"sub{rounding}{sat}.f32.{t}", [t, "f32"]
                if rounding:
                    yield f"fma{rounding}{sat}.f32.{t}", [t, t, "f32"]


def nearby(t, operands):
    """Mixed operands whose addend is, often, near the number that it meets, or near half of its last place."""
    if random.random() < 0.5:
        return operands
    exponent, fraction = FORMAT[t]
    halves = [x >> fraction & (1 << exponent) - 1 for x in operands[:-1]]
    power = sum(e - (1 << exponent - 1) + 1 for e in halves) + random.choice([0, 0, 0, 1, -1, 23, 24, 25, -23, -24, -25])
    addend = random.randrange(2) << 31 | min(max(power + 127, 0), 254) << 23
    addend |= random.choice([0, 0, 1, 1 << 22, (1 << 23) - 1, random.getrandbits(23)])
    return [*operands[:-1], addend]


def cases(count):
    """So many vectors, half of them comparisons."""
    random.seed(12)
    compares, arithmetic = list(forms()), list(mixed_forms())
    seen = set()
    while len(seen) < count:
        if len(seen) % 2:
            instruction, types = random.choice(compares)
            operands = [*pair(types[0]), *(value(t) for t in types[2:])]
        else:
            instruction, types = random.choice(arithmetic)
            operands = nearby(types[0], [value(t) for t in types])
        digits = [f"{x:0{max(width(t) // 4, 1)}x}" for t, x in zip(types, operands)]
        key = " ".join([instruction, *digits])
        if key not in seen:
            seen.add(key)
            yield key, instruction, operands


def compiler(path):
    """A function from NVVM IR to PTX."""
    nvvm = ctypes.CDLL(path)

    def compile(text):
        program, size = ctypes.c_void_p(), ctypes.c_size_t()
        data = text.encode()
        nvvm.nvvmCreateProgram(ctypes.byref(program))
        nvvm.nvvmAddModuleToProgram(program, data, ctypes.c_size_t(len(data)), b"vectors")
        options = (ctypes.c_char_p * 2)(b"-arch=compute_100", b"-opt=3")
        failed = nvvm.nvvmCompileProgram(program, 2, options)
        fetch = ("ProgramLog", "ProgramLog") if failed else ("CompiledResult", "CompiledResult")
        getattr(nvvm, f"nvvmGet{fetch[0]}Size")(program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        getattr(nvvm, f"nvvmGet{fetch[1]}")(program, buffer)
        nvvm.nvvmDestroyProgram(ctypes.byref(program))
        if failed:
            sys.exit(buffer.value.decode())
        return buffer.value.decode()

    return compile


def constants(ptx):
    """The values stored by each function in order; None where one is not constant."""
    found, registers = {}, {}
    for line in ptx.split("\n"):
        if m := re.match(r"\s*\.visible \.func k(\d)", line):
            current, registers = found.setdefault(int(m[1]), []), {}
        elif m := re.match(r"\s*mov\.\w+\s+(%\w+), (-?)(?:0[fdxX])?(\w+);", line):
            base = 16 if re.search(r", 0[fdxX]", line) else 10
            registers[m[1]] = int(m[2] + m[3], base) if re.fullmatch(r"[0-9a-fA-F]+", m[3]) else None
        elif m := re.match(r"\s*st\.volatile\.\w+\.(\w+)\s+\[.*\], (%\w+|-?\d+);", line):
            stored = registers.get(m[2]) if m[2][0] == "%" else int(m[2])
            current.append(None if stored is None else stored % (1 << width(m[1])))
        elif m := re.match(r"\s*\w[\w.]*\s+(%\w+),", line):
            registers[m[1]] = None
    return found


def main():
    compile, batch = compiler(sys.argv[1]), []

    def flush():
        module = Module()
        for index, (_, instruction, operands) in enumerate(batch):
            parts = instruction.split(".")
            (compare if parts[0].startswith("set") else mixed)(module, index, parts, operands)
        results = {}
        for function, stored in constants(compile(module.text())).items():
            keys = module.order[bool(function)]
            if len(keys) != len(stored):
                sys.exit(f"{len(stored)} stores of {len(keys)} were found")
            for (index, shift), part in zip(keys, stored):
                if part is None:
                    sys.exit(f"{batch[index][0]} was not folded")
                results[index] = results.get(index, 0) | part << shift
        for index, (key, instruction, _) in enumerate(batch):
            parts = instruction.split(".")
            bits = 4 if parts[0] == "setp" else width(parts[-2]) if parts[0] == "set" else 32
            print(f"{key} = {results[index]:0{bits // 4}x}")
        batch.clear()

    for case in cases(int(sys.argv[2])):
        batch.append(case)
        if len(batch) == 5000:
            flush()
    if batch:
        flush()


main()
