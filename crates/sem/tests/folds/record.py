#!/usr/bin/env python3
"""Records what ptxas folds: `record.py PTXAS NVDISASM > vectors.txt`.

With a number behind that, so many vectors of the core instructions (`cargo xtask record values`).

Each instruction below is assembled with constant operands in a kernel of its own that stores the result; where ptxas
folds it, the constant stands in the machine code. A line of the output is the instruction, its operands and the
result in hexadecimal, as wide as their registers. `setp` and `testp` record p, and q above it.
"""
import random
import re
import subprocess
import sys
import tempfile

random.seed(20)
PER_FORM = 8
TARGET = ("8.8", "sm_100")
BYTES_TARGET = ("9.2", "sm_120f")
WIDTH = {"pred": 1, "b8": 8, "u8": 8, "s8": 8, "b16": 16, "u16": 16, "s16": 16, "f16": 16, "bf16": 16}
WIDTH |= {t: 32 for t in ["b32", "u32", "s32", "f32", "f16x2", "bf16x2", "u16x2", "s16x2", "u8x4", "s8x4", "tf32"]}
WIDTH |= {t: 64 for t in ["b64", "u64", "s64", "f64"]}
EDGES = {
    "f32": [0, 1, 0x7FFFFF, 0x800000, 0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x3FC00000, 0x40490FDB, 0x4B000001,
            0x4F000000, 0x7F7FFFFF, 0x7F800000, 0x7FC12345, 0x7F812345, 0x3EAAAAAB, 0x33800000, 0x477FF000],
    "f64": [0, 1, 0x000FFFFFFFFFFFFF, 1 << 52, 0x3FF0000000000000, 0x3FF0000000000001, 0x3FF8000000000000,
            0x43E0000000000000, 0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000, 0x7FF8123456789ABC, 0x380FFFFFFFFFFFFF,
            0x3690000000000000, 0x47EFFFFFF0000000, 0x400921FB54442D18],
    "f16": [0, 1, 0x3FF, 0x400, 0x3BFF, 0x3C00, 0x3C01, 0x3E00, 0x7BFF, 0x7C00, 0x7E01, 0x7C01, 0x5801],
    "bf16": [0, 1, 0x7F, 0x80, 0x3F7F, 0x3F80, 0x3F81, 0x3FC0, 0x7F7F, 0x7F80, 0x7FC1, 0x7F81, 0x4301],
}
RND = ["rn", "rz", "rm", "rp"]


def forms():
    """(instruction, destination type, source types)"""
    ints = ["u16", "s16", "u32", "s32", "u64", "s64"]
    for t in ints:
        wide = {"16": t[0] + "32", "32": t[0] + "64"}.get(t[1:])
        for op in ["add", "sub", "mul.lo", "mul.hi", "div", "rem", "min", "max"]:
            yield f"{op}.{t}", t, [t, t]
        for op in ["mad.lo", "mad.hi", "sad"]:
            yield f"{op}.{t}", t, [t, t, t]
        if wide:
            yield f"mul.wide.{t}", wide, [t, t]
            yield f"mad.wide.{t}", wide, [t, t, wide]
        for op in ["eq", "ne", "lt", "le", "gt", "ge"] + (["lo", "ls", "hi", "hs"] if t[0] == "u" else []):
            yield f"setp.{op}.{t}", "pred", [t, t]
        yield f"set.le.u32.{t}", "u32", [t, t]
        yield f"set.gt.f32.{t}", "f32", [t, t]
        yield f"shr.{t}", t, [t, "u32"]
        if t[0] == "s":
            yield f"abs.{t}", t, [t]
            yield f"neg.{t}", t, [t]
    for t in ["u32", "s32", "u64", "s64"]:
        yield f"bfind.{t}", "u32", [t]
        yield f"bfind.shiftamt.{t}", "u32", [t]
        yield f"bfe.{t}", t, [t, "u8", "u8"]
    for op in ["add.sat.s32", "sub.sat.s32"]:
        yield op, "s32", ["s32", "s32"]
    for op in ["mul24.lo", "mul24.hi"]:
        for t in ["u32", "s32"]:
            yield f"{op}.{t}", t, [t, t]
    for op in ["mad24.lo.u32", "mad24.hi.u32", "mad24.lo.s32", "mad24.hi.s32", "mad24.hi.sat.s32", "mad.hi.sat.s32"]:
        yield op, op[-3:], [op[-3:]] * 3
    for t in ["b16", "b32", "b64"]:
        for op in ["and", "or", "xor"]:
            yield f"{op}.{t}", t, [t, t]
        yield f"not.{t}", t, [t]
        yield f"cnot.{t}", t, [t]
        yield f"shl.{t}", t, [t, "u32"]
        yield f"selp.{t}", t, [t, t, "pred"]
        yield f"slct.{t}.s32", t, [t, t, "s32"]
        yield f"slct.{t}.f32", t, [t, t, "f32"]
        yield f"slct.ftz.{t}.f32", t, [t, t, "f32"]
    for t in ["b32", "b64"]:
        yield f"popc.{t}", "u32", [t]
        yield f"clz.{t}", "u32", [t]
        yield f"brev.{t}", t, [t]
        yield f"bfi.{t}", t, [t, t, "u8", "u8"]
    for op in ["shf.l.clamp", "shf.l.wrap", "shf.r.clamp", "shf.r.wrap", "prmt"]:
        yield f"{op}.b32", "b32", ["b32", "b32", "u32"]
    yield "fns.b32", "b32", ["b32", "small", "offset"]
    for op in ["szext.clamp.s32", "szext.wrap.s32", "szext.clamp.u32", "szext.wrap.u32"]:
        yield op, "b32", ["b32", "u8"]
    for rnd in ["", ".rn", ".rz", ".rm", ".rp"]:
        for m in ["", ".ftz", ".sat", ".ftz.sat"]:
            for op in ["add", "sub", "mul"]:
                yield f"{op}{rnd}{m}.f32", "f32", ["f32", "f32"]
            if rnd:
                yield f"fma{rnd}{m}.f32", "f32", ["f32"] * 3
        for op in ["add", "sub", "mul"]:
            yield f"{op}{rnd}.f64", "f64", ["f64", "f64"]
        if rnd:
            yield f"fma{rnd}.f64", "f64", ["f64"] * 3
    for a in ["f16", "bf16"]:
        for rnd in RND:
            for sat in ["", ".sat"]:
                yield f"add.{rnd}{sat}.f32.{a}", "f32", [a, "f32"]
                yield f"sub.{rnd}{sat}.f32.{a}", "f32", [a, "f32"]
                yield f"fma.{rnd}{sat}.f32.{a}", "f32", [a, a, "f32"]
    for op in ["min", "max"]:
        for m in ["", ".ftz", ".NaN", ".ftz.NaN"]:
            yield f"{op}{m}.f32", "f32", ["f32", "f32"]
        yield f"{op}.f64", "f64", ["f64", "f64"]
    for op in ["abs", "neg"]:
        for t in ["f32", "f64", "f16", "bf16", "f16x2"]:
            yield f"{op}.{t}", t, [t]
        yield f"{op}.ftz.f32", "f32", ["f32"]
    for t in ["f32", "f64"]:
        for op in ["finite", "infinite", "number", "notanumber", "normal", "subnormal"]:
            yield f"testp.{op}.{t}", "pred", [t]
        for ftz in ["", ".ftz"] if t == "f32" else [""]:
            for op in "eq ne lt le gt ge equ neu ltu leu gtu geu num nan".split():
                yield f"setp.{op}{ftz}.{t}", "pred", [t, t]
                yield f"set.{op}{ftz}.u32.{t}", "u32", [t, t]
    for op in ["rcp", "rsqrt", "sqrt"]:
        yield f"{op}.approx.ftz.f32", "f32", ["exact"]
    ints += ["u8", "s8"]
    for a in ints:
        for d in ints:
            yield f"cvt.{d}.{a}", d, [a]
            yield f"cvt.sat.{d}.{a}", d, [a]
        for rnd in RND:
            for d in ["f16", "bf16", "f32", "f64"]:
                yield f"cvt.{rnd}.{d}.{a}", d, [a]
    for rnd in RND:
        for m in ["", ".sat", ".ftz"]:
            yield f"cvt.{rnd}{m}.f32.f64", "f32", ["f64"]
            yield f"cvt.{rnd}{m}.f16.f32", "f16", ["f32"]
        yield f"cvt.{rnd}.f16.f64", "f16", ["f64"]
        yield f"cvt.{rnd}.bf16.f32", "bf16", ["f32"]
        yield f"cvt.{rnd}i.f32.f32", "f32", ["f32"]
        yield f"cvt.{rnd}i.f64.f64", "f64", ["f64"]
        for a in ["f16", "bf16", "f32", "f64"]:
            for d in ints:
                yield f"cvt.{rnd}i.{d}.{a}", d, [a]
    for a, d in [
            ("f16", "f32"), ("f16", "f64"), ("bf16", "f32"), ("f32", "f64"), ("f32", "f32"), ("f64", "f64")]:
        for m in ["", ".sat"] + ([".ftz"] if "f32" in (a, d) else []):
            yield f"cvt{m}.{d}.{a}", d, [a]
    yield "cvt.rna.tf32.f32", "b32", ["f32"]
    yield "cvt.rna.satfinite.tf32.f32", "b32", ["f32"]
    for d in ["f16x2", "bf16x2"]:
        yield f"cvt.rn.{d}.f32", d, ["f32", "f32"]


def bytes_forms():
    """Those on four bytes that ptxas folds."""
    for t in ["u8x4", "s8x4"]:
        for op in ["add", "sub"]:
            for m in ["", ".sat"]:
                yield f"{op}{m}.{t}", t, [t, t]
    yield "neg.s8x4", "s8x4", ["s8x4"]


def value(t):
    """A constant of a type: an edge with either sign, or random bits."""
    if t == "small":
        return random.randrange(32)
    if t == "offset":
        return random.randrange(-9, 9) & 0xFFFFFFFF
    if t == "exact":
        # The approximate functions agree with the exact ones on powers of four.
        return (127 + 2 * random.randrange(-20, 20)) << 23
    if t == "pred":
        return random.randrange(2)
    width = WIDTH[t]
    if t in EDGES:
        if random.random() < 0.75:
            return random.choice(EDGES[t]) | random.randrange(2) << (width - 1)
        if random.random() < 0.5:
            exponent_bits = {"f16": 5, "f64": 11}.get(t, 8)
            bias = (1 << (exponent_bits - 1)) - 1
            fraction = width - 1 - exponent_bits
            return random.randrange(2) << (width - 1) | (bias + random.randrange(-9, 40)) % (2 * bias) << fraction \
                | random.getrandbits(fraction)
        return random.getrandbits(width)
    if t in ("u8x4", "s8x4"):
        return int.from_bytes(random.choice([0, 1, 2, 127, 128, 129, 254, 255, random.randrange(256)]) for _ in range(4))
    if t in ("f16x2", "bf16x2"):
        return value(t[:-2]) << 16 | value(t[:-2])
    edges = [0, 1, 2, 7, (1 << (width - 1)) - 1, 1 << (width - 1), (1 << width) - 1, (1 << width) - 7, width, width - 1]
    return random.choice(edges) % (1 << width) if random.random() < 0.6 else random.getrandbits(width)


def literal(t, x, n):
    """How the constant is written, and an instruction that must come before."""
    if t in ("f32", "exact"):
        return f"0f{x:08X}", ""
    if t == "f64":
        return f"0d{x:016X}", ""
    if t in ("f16", "bf16"):
        return f"%h{n}", f"mov.b16 %h{n}, {x};"
    if t in ("s8", "s16", "s32", "s64", "offset"):
        width = WIDTH.get(t, 32)
        return str(x - (1 << width) if x >> (width - 1) else x), ""
    if t in ("f16x2", "u8x4", "s8x4"):
        return f"%r{n}", f"mov.b32 %r{n}, {x};"
    if t == "pred":
        return f"%p{n}", f"setp.eq.u32 %p{n}, {x}, 1;"
    return f"{x}", ""


def kernel(name, instruction, dtype, operands):
    written = [literal(t, x, n) for n, (t, x) in enumerate(operands)]
    before, sources = " ".join(w[1] for w in written), ", ".join(w[0] for w in written)
    width = max(WIDTH[dtype], 16)
    if dtype == "pred":
        pq = "%pd" if instruction.startswith("testp") else "%pd|%qd"
        body = f"{instruction} {pq}, {sources}; selp.b32 %o32, 1, 0, %pd; @%qd or.b32 %o32, %o32, 2;"
        body = body if "|" in pq else body[:body.index(" @")]
        width = 32
    elif dtype in ("f32", "f64"):
        body = f"{instruction} %{dtype}, {sources}; mov.b{width} %o{width}, %{dtype};"
    else:
        body = f"{instruction} %o{width}, {sources};"
    return width, f"""
.visible .entry {name}(.param .u64 p) {{
.reg .b64 %o64, %ptr; .reg .b32 %o32, %r<9>; .reg .b16 %o16, %h<9>; .reg .f32 %f32; .reg .f64 %f64; .reg .pred %pd, %qd, %p<9>;
ld.param.u64 %ptr, [p];
{before} {body}
st.global.b{width} [%ptr], %o{width};
ret;}}"""


def folded(code, width):
    """The stored constant, if the code only moves constants."""
    registers = {"RZ": 0}
    for text, word in code:
        text = re.sub(r"\s*[&?].*$", "", text)
        immediate = word >> 32
        if m := re.match(r"STG\S* \S*\[.*?\](?:\.64)?, (\w+)", text):
            low = registers.get(m[1])
            if m[1] == "RZ":
                return 0
            if width < 64:
                return None if low is None else low & ((1 << width) - 1)
            high = registers.get(f"R{int(m[1][1:]) + 1}")
            return None if low is None or high is None else low | high << 32
        if m := re.match(r"CS2R(\.32)? R(\d+), SRZ", text):
            registers[f"R{m[2]}"] = 0
            if not m[1]:
                registers[f"R{int(m[2]) + 1}"] = 0
            continue
        move = r"(?:MOV|U?IMAD\.(?:MOV(?:\.U32)?|U32)|UMOV|HFMA2(?:\.MMA)?) (U?R\d+), (.*)$"
        if (m := re.match(move, text)) and "c[" not in m[2]:
            last = m[2].split(",")[-1].strip()
            if "HFMA2" in text and "-RZ, RZ" not in text:
                registers.pop(m[1], None)
            elif re.fullmatch(r"-?U?R(\d+|Z)", last):
                registers[m[1]] = 0 if last.endswith("Z") else registers.get(last)
            else:
                registers[m[1]] = immediate
        elif not re.match(r"U?LDC|S2U?R|R2UR|NOP|BRA|EXIT", text):
            return None
    return None


def assemble(ptxas, nvdisasm, cases, target=TARGET):
    """The folded result of each case, None where it is refused or not folded."""
    header = ".version {}\n.target {}\n.address_size 64\n".format(*target)
    results = [None] * len(cases)
    live = list(range(len(cases)))
    with tempfile.TemporaryDirectory() as folder:
        while live:
            kernels = [kernel(f"k{i}", *cases[i]) for i in live]
            lines_before, starts = header.count("\n"), []
            for _, text in kernels:
                starts.append(lines_before)
                lines_before += text.count("\n")
            with open(f"{folder}/x.ptx", "w") as f:
                f.write(header + "".join(text for _, text in kernels) + "\n")
            run = subprocess.run([ptxas, "-arch", target[1], f"{folder}/x.ptx", "-o", f"{folder}/x.cubin"],
                                 capture_output=True, text=True)
            if run.returncode == 0:
                break
            bad = {max(n for n, s in enumerate(starts) if s < int(line))
                   for line in re.findall(r"line (\d+); error", run.stdout + run.stderr)}
            if not bad:
                sys.exit(run.stdout + run.stderr)
            live = [i for n, i in enumerate(live) if n not in bad]
        listing = subprocess.run([nvdisasm, "-hex", f"{folder}/x.cubin"], capture_output=True, text=True).stdout
    code, current = {}, None
    for line in listing.split("\n"):
        if m := re.match(r"\s*\.section\s+\.text\.k(\d+)", line):
            current = code.setdefault(int(m[1]), [])
        elif m := re.search(r"/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;\s*/\* 0x([0-9a-f]{16}) \*/", line):
            current.append((m[1], int(m[2], 16)))
    for i in live:
        results[i] = folded(code.get(i, []), kernel("k", *cases[i])[0])
    return results


def digits(x, t):
    width = {"pred": 4, "small": 8, "offset": 32, "exact": 32, "u8": 8, "s8": 8}.get(t) or WIDTH[t]
    return f"{x:0{width // 4}x}"


COMPARISONS = {"b": "eq ne", "s": "eq ne lt le gt ge", "u": "eq ne lt le gt ge lo ls hi hs",
               "f": "eq ne lt le gt ge equ neu ltu leu gtu geu num nan"}


def core():
    """Every form of the core instructions that ptxas folds."""
    for t in "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64".split():
        for op in COMPARISONS[t[0]].split():
            for ftz in ["", ".ftz"] if t == "f32" else [""]:
                yield f"setp.{op}{ftz}.{t}", "pred", [t, t]
                for b in ["and", "or", "xor"]:
                    yield f"setp.{op}.{b}{ftz}.{t}", "pred", [t, t, "pred"]
                for d in ["u32", "s32", "f32"]:
                    yield f"set.{op}{ftz}.{d}.{t}", d, [t, t]
                    for b in ["and", "or", "xor"]:
                        yield f"set.{op}.{b}{ftz}.{d}.{t}", d, [t, t, "pred"]
        yield f"selp.{t}", t, [t, t, "pred"]
        yield f"slct.{t}.s32", t, [t, t, "s32"]
        yield f"slct.{t}.f32", t, [t, t, "f32"]
        yield f"slct.ftz.{t}.f32", t, [t, t, "f32"]
    for a in ["f16", "bf16"]:
        for rnd in RND:
            for sat in ["", ".sat"]:
                for _ in range(3):
                    yield f"add.{rnd}{sat}.f32.{a}", "f32", [a, "f32"]
                    yield f"sub.{rnd}{sat}.f32.{a}", "f32", [a, "f32"]
                    yield f"fma.{rnd}{sat}.f32.{a}", "f32", [a, a, "f32"]


def core_cases():
    """Many cases of each core form, in random order."""
    random.seed(7)
    EDGES["f32"] += [0x7FFFFFFF, 0x7F800001, 0x7FBFFFFF, 0x3F800000, 2, 0x00400000]
    EDGES["f64"] += [0x7FF0000000000001, 0x7FFFFFFFFFFFFFFF, 0x7FF4000000000000, 0x0008000000000000]
    cases = [(i, d, [(t, value(t)) for t in types]) for i, d, types in core() for _ in range(150)]
    random.shuffle(cases)
    return cases


def main():
    wanted = int(sys.argv[3]) if len(sys.argv) > 3 else None
    if wanted:
        groups = [(core_cases(), TARGET)]
    else:
        groups = [([(i, d, [(t, value(t)) for t in types]) for i, d, types in forms() for _ in range(PER_FORM)], TARGET)]
        random.seed(21)
        cases = [(i, d, [(t, value(t)) for t in types]) for i, d, types in bytes_forms() for _ in range(4 * PER_FORM)]
        groups.append((cases, BYTES_TARGET))
    size = 2000 if wanted else 1000
    seen = set()
    batches = ((cases[start:start + size], target) for cases, target in groups for start in range(0, len(cases), size))
    for batch, target in batches:
        for (instruction, dtype, operands), result in zip(batch, assemble(sys.argv[1], sys.argv[2], batch, target)):
            if result is None:
                continue
            width = max(WIDTH[dtype], 16) if dtype != "pred" else 4
            line = " ".join([instruction, *(digits(x, t) for t, x in operands), "=", f"{result:0{width // 4}x}"])
            if line not in seen:
                seen.add(line)
                print(line)
            if len(seen) == wanted:
                return


main()
