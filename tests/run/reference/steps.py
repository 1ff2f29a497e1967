"""Writes kernels about what many lanes do at once beside this folder, with the results that must come out: accesses that step evenly or
follow no pattern, copies, matches, branches by index.

    python3 tests/run/reference/steps.py

Each thread folds what it gets into one number (times 31, plus the next), which is computed here thread by thread.
"""

from random import Random

from archive import HERE, Arrays

WORD = 2**32
RANDOM = Random(7)
TABLE = [RANDOM.getrandbits(32) for _ in range(1024)]
# All kernels have the same table, in an archive of its own.
SHARED = Arrays("steps")
TABLE_DECLARED = SHARED.variable("table", "b32", TABLE)
BYTES = b"".join(int(v).to_bytes(4, "little") for v in TABLE)


def element(kind, at):
    """An element of the table: `u16`, `s8`, `b64`."""
    size = int(kind[1:]) // 8
    assert 0 <= at and at + size <= len(BYTES)
    return int.from_bytes(BYTES[at : at + size], "little", signed=kind[0] == "s")


def fold(total, *values):
    for value in values:
        total = (total * 31 + value) % WORD
    return total


def write(name, text, launches, declarations, body, version="8.0", target="sm_80", notes=""):
    """A kernel whose threads have %thread (in the block), %i (in the grid), %n (all threads), %table and %sum, which goes to out[i]."""
    head = "".join(f"// {line}\n" for line in text.splitlines()) + "// Written by reference/steps.py.\n//\n"
    table, options = (TABLE_DECLARED, SHARED.options) if "table" in body else ("", "")
    arrays = Arrays(name)
    for number, ((grid, block), extra, results) in enumerate(launches, 1):
        head += f"// RUN: --grid {grid} --block {block} --threads 1 --arg u32[{len(results)}]{extra}{options}\n"
        head += arrays.expected(0, results, str, number)
    arrays.write()
    body = "".join(f"    {line}\n" for line in body.splitlines())
    fold_table = "    mov.u64 %table, table;\n" if table else ""
    (HERE / f"{name}.ptx").write_text(
        f"""{head}{notes}
.version {version}
.target {target}
.address_size 64

{table}.visible .entry test(.param .u64 out)
{{
    .reg .b16 %h<8>;
    .reg .b32 %thread, %block, %size, %blocks, %i, %n, %sum, %w<16>;
    .reg .b64 %out, %table, %at, %to, %d<4>;
    .reg .pred %p, %q;
{declarations}    ld.param.u64 %out, [out];
    mov.u32 %thread, %tid.x;
    mov.u32 %block, %ctaid.x;
    mov.u32 %size, %ntid.x;
    mov.u32 %blocks, %nctaid.x;
    mad.lo.u32 %i, %block, %size, %thread;
    mul.lo.u32 %n, %blocks, %size;
    mov.u32 %sum, 0;
{fold_table}{body}    mad.wide.u32 %to, %i, 4, %out;
    st.global.u32 [%to], %sum;
    ret;
}}
"""
    )


def threads(shape):
    """Thread in the block, and in the grid."""
    grid, block = shape
    return [(i % block, i) for i in range(grid * block)]


def take(kind):
    """Folds %d0, %w0 or %h0 into the sum."""
    if kind == "b64":
        return "mov.b64 {%w0, %w1}, %d0;\nmad.lo.u32 %sum, %sum, 31, %w0;\nmad.lo.u32 %sum, %sum, 31, %w1;\n"
    if kind == "b16":
        return "cvt.u32.u16 %w0, %h0;\nmad.lo.u32 %sum, %sum, 31, %w0;\n"
    return "mad.lo.u32 %sum, %sum, 31, %w0;\n"


def parts(kind, value):
    """What `take` folds."""
    value %= 2 ** int(kind[1:])
    return [value % WORD, value >> 32] if kind == "b64" else [value]


REGISTER = {"b64": "%d0", "b32": "%w0", "b16": "%h0"}
# Blocks of which several run together, whole warps or not, and one alone.
SHAPES = [(6, 32), (4, 48), (1, 200), (4, 60)]


def strided():
    """Loads and stores that step by whole elements, upwards and downwards, of all lanes and of some."""
    # Kind, elements from thread to thread, and the first one's place, from the end on if negative: the last one's then.
    loads = [
        ("b32", 2, 0), ("b16", 2, 2), ("b64", 2, 8), ("b32", 3, 4), ("b32", -1, 1000), ("b16", -1, 602), ("b64", -1, 3200),
        ("b32", -2, 3000), ("b32", 2, -4), ("b16", 2, -2), ("b64", 2, -8), ("b32", 1, 400), ("b32", 0, 12),
    ]  # fmt: skip
    body, rules = "", []
    for number, (kind, step, at) in enumerate(loads):
        size = int(kind[1:]) // 8
        bytes_ = step * size
        for guarded in (False, True):
            if at >= 0:
                body += f"mul.wide.s32 %at, %i, {bytes_};\nadd.s64 %at, %at, %table;\n"
                offset = at
            else:
                # The last thread of the grid has the last element.
                body += f"sub.u32 %w2, %n, 1;\nsub.u32 %w2, %i, %w2;\nmul.wide.s32 %at, %w2, {bytes_};\nadd.s64 %at, %at, %table;\n"
                offset = 4096 + at
            guard = "@%p " if guarded else ""
            if guarded:
                body += f"rem.u32 %w3, %i, {31 + number};\nsetp.lt.u32 %p, %w3, {9 + number};\n"
                body += f"mov.b{kind[1:]} {REGISTER[kind]}, 5;\n"
            body += f"{guard}ld.global.{kind} {REGISTER[kind]}, [%at+{offset}];\n{take(kind)}"
            rules.append((kind, bytes_, offset, at < 0, guarded, number))
    # Into a part of the output of its own, behind the sums: upwards with gaps, downwards, and of some lanes downwards.
    body += """mul.wide.u32 %to, %n, 4;
add.s64 %to, %to, %out;
mul.wide.u32 %at, %i, 8;
add.s64 %at, %at, %to;
st.global.b32 [%at], %sum;
mul.wide.u32 %d1, %n, 8;
add.s64 %to, %to, %d1;
sub.u32 %w2, %n, %i;
sub.u32 %w2, %w2, 1;
mul.wide.u32 %at, %w2, 4;
add.s64 %at, %at, %to;
st.global.b32 [%at], %sum;
mul.wide.u32 %d1, %n, 4;
add.s64 %at, %at, %d1;
rem.u32 %w3, %i, 59;
setp.lt.u32 %p, %w3, 41;
@%p st.global.b32 [%at], %sum;
add.s64 %to, %to, %d1;
add.s64 %to, %to, %d1;
mul.wide.u32 %at, %w2, 2;
add.s64 %at, %at, %to;
cvt.u16.u32 %h0, %sum;
st.global.b16 [%at], %h0;
mul.wide.u32 %d1, %n, 2;
add.s64 %to, %to, %d1;
mul.wide.u32 %at, %w2, 8;
add.s64 %at, %at, %to;
mov.b64 %d0, {%sum, %i};
st.global.b64 [%at], %d0;
"""
    # The block's part of the table in shared memory: downwards, and every second.
    body += """mov.u32 %w4, mine;
mul.lo.u32 %w5, %thread, 4;
add.u32 %w6, %w4, %w5;
st.shared.b32 [%w6], %sum;
sub.u32 %w7, %size, %thread;
mul.lo.u32 %w7, %w7, 4;
add.u32 %w7, %w7, %w4;
bar.sync 0;
ld.shared.b32 %w0, [%w7+-4];
mad.lo.u32 %sum, %sum, 31, %w0;
mul.lo.u32 %w5, %thread, 8;
add.u32 %w6, %w4, %w5;
setp.lt.u32 %p, %thread, 16;
mov.b32 %w0, 9;
@%p ld.shared.b32 %w0, [%w6];
mad.lo.u32 %sum, %sum, 31, %w0;
bar.sync 0;
mul.lo.u32 %w5, %thread, 8;
add.u32 %w6, %w4, %w5;
st.shared.b32 [%w6+4], %thread;
st.shared.b32 [%w6], %block;
bar.sync 0;
mul.lo.u32 %w7, %thread, 4;
add.u32 %w7, %w7, %w4;
ld.shared.b32 %w0, [%w7];
mad.lo.u32 %sum, %sum, 31, %w0;
"""
    launches = []
    for shape in SHAPES:
        total = shape[0] * shape[1]
        sums = []
        for thread, i in threads(shape):
            value = 0
            for kind, step, offset, from_end, guarded, number in rules:
                at = (i - (total - 1) if from_end else i) * step + offset
                there = not guarded or i % (31 + number) < 9 + number
                value = fold(value, *parts(kind, element(kind, at) if there else 5))
            sums.append(value)
        gaps, down, some, halves, pairs = [7] * 2 * total, [7] * total, [7] * total, [0] * total, [0] * 2 * total
        for i, value in enumerate(sums):
            gaps[2 * i] = value
            down[total - 1 - i] = value
            if i % 59 < 41:
                some[total - 1 - i] = value
            halves[total - 1 - i] = value % 2**16
            pairs[2 * (total - 1 - i) : 2 * (total - 1 - i) + 2] = [value, i]
        halves = [halves[at] | halves[at + 1] << 16 for at in range(0, total, 2)]
        ends = []
        for thread, i in threads(shape):
            first = i - thread
            value = fold(sums[i], sums[first + shape[1] - 1 - thread])
            value = fold(value, sums[first + 2 * thread] if thread < 16 else 9)
            ends.append(fold(value, thread // 2 if thread % 2 else i // shape[1]))
        launches.append((shape, "=7", ends + gaps + down + some + halves + pairs))
    write(
        "strided_memory",
        "Loads and stores of every second and third element, downwards, of all threads and of some, of whole blocks that run together and of\n"
        "odd ones, up to the last byte of a variable; in shared memory too. Behind the sums: what was stored, with gaps.",
        launches,
        "    .shared .align 16 .b8 mine[1600];\n",
        body,
    )


def narrow():
    """Loads at addresses without a pattern into registers that are wider."""
    forms = [(kind, width) for kind in ("u8", "s8", "u16", "s16") for width in (16, 32, 64)] + [("u32", 64), ("s32", 64)]
    body, rules = "", []
    for number, (kind, width) in enumerate(forms):
        size = int(kind[1:]) // 8
        for guarded in (False, True):
            multiplier = 7919 + 2 * number
            body += f"mul.lo.u32 %w2, %i, {multiplier};\nadd.u32 %w2, %w2, {number};\nrem.u32 %w2, %w2, 1000;\n"
            body += f"mul.wide.u32 %at, %w2, {size};\nadd.s64 %at, %at, %table;\n"
            register = REGISTER[f"b{width}"]
            guard = "@%p " if guarded else ""
            if guarded:
                # None of the first lanes.
                body += f"setp.ge.u32 %p, %i, {19 + 7 * number};\nmov.b{width} {register}, 5;\n"
            body += f"{guard}ld.global.{kind} {register}, [%at+{4096 - 1000 * size}];\n{take(f'b{width}')}"
            rules.append((kind, width, size, multiplier, number, guarded))
    launches = []
    for shape in SHAPES:
        sums = []
        for _, i in threads(shape):
            value = 0
            for kind, width, size, multiplier, number, guarded in rules:
                at = (i * multiplier + number) % 1000 * size + 4096 - 1000 * size
                there = not guarded or i >= 19 + 7 * number
                value = fold(value, *parts(f"b{width}", element(kind, at) if there else 5))
            sums.append(value)
        launches.append((shape, "", sums))
    write(
        "narrow_scattered",
        "Elements of 8, 16 and 32 bits at addresses without a pattern, extended to all widths, of all threads and of some.",
        launches,
        "",
        body,
    )


def vectors():
    """Vectors of bytes, and vectors with gaps between."""
    forms = [("u8", 4, 4), ("s8", 4, 4), ("u8", 2, 2), ("s8", 2, 2), ("u8", 4, 8), ("s8", 2, 6), ("u16", 4, 24), ("u32", 4, 16)]
    forms += [("u32", 2, 16), ("s8", 4, -4), ("u32", 4, 0), ("u32", 4, 32)]
    body, rules = "", []
    for number, (kind, count, step) in enumerate(forms):
        size = int(kind[1:]) // 8
        letter = "%w" if size == 4 else "%h"
        width = 32 if size == 4 else 16
        registers = [f"{letter}{2 + k}" for k in range(count)]
        for guarded in (False, True):
            first = 16 if step >= 0 else 4000
            body += f"mul.wide.s32 %at, %i, {step};\nadd.s64 %at, %at, %table;\n"
            guard = "@%p " if guarded else ""
            if guarded:
                body += f"rem.u32 %w8, %i, {23 + number};\nsetp.ge.u32 %p, %w8, {11 + number};\n"
                body += "".join(f"mov.b{width} {register}, {k};\n" for k, register in enumerate(registers))
            body += f"{guard}ld.global.v{count}.{kind} {{{', '.join(registers)}}}, [%at+{first}];\n"
            for register in registers:
                body += f"cvt.u32.u16 %w0, {register};\n" if width == 16 else f"mov.b32 %w0, {register};\n"
                body += "mad.lo.u32 %sum, %sum, 31, %w0;\n"
            rules.append((kind, count, step, first, number, guarded, width))
    launches = []
    for shape in [(4, 32), (4, 30), (1, 100), (6, 16)]:
        sums = []
        for _, i in threads(shape):
            value = 0
            for kind, count, step, first, number, guarded, width in rules:
                size = int(kind[1:]) // 8
                there = not guarded or i % (23 + number) >= 11 + number
                for k in range(count):
                    got = element(kind, first + i * step + k * size) if there else k
                    value = fold(value, got % 2**width)
            sums.append(value)
        launches.append((shape, "", sums))
    write(
        "vectors_of_bytes",
        "Vectors of two and four bytes, signed or not, one after the other, with gaps and downwards; vectors of words with gaps between,\n"
        "of all threads and of some.",
        launches,
        "",
        body,
    )


def last_stays():
    """Threads of a block store at one address, those of one warp, whose order is known."""
    body = """shr.u32 %w2, %thread, 5;
and.b32 %w3, %block, 1;
setp.eq.u32 %q, %w2, %w3;
@%q st.shared.u32 [mine], %i;
bar.sync 0;
ld.shared.u32 %w0, [mine];
mad.lo.u32 %sum, %sum, 31, %w0;
rem.u32 %w3, %thread, 7;
setp.lt.and.u32 %p, %w3, 3, %q;
@%p st.shared.u16 [mine+6], %i;
mov.b64 %d1, {%thread, %i};
@%p st.shared.u64 [mine+8], %d1;
bar.sync 0;
ld.shared.u16 %w0, [mine+6];
mad.lo.u32 %sum, %sum, 31, %w0;
ld.shared.u32 %w0, [mine+12];
mad.lo.u32 %sum, %sum, 31, %w0;
mul.wide.u32 %at, %block, 8;
mov.u64 %d0, cells;
add.s64 %at, %at, %d0;
setp.lt.u32 %p, %thread, 20;
@%p st.global.u32 [%at+4], %i;
bar.sync 0;
ld.global.u32 %w0, [%at+4];
mad.lo.u32 %sum, %sum, 31, %w0;
"""
    launches = []
    for shape in [(8, 64), (6, 80), (4, 128), (1, 200), (6, 96)]:
        sums = []
        for thread, i in threads(shape):
            first, block = i - thread, i // shape[1]
            ours = [t for t in range(shape[1]) if t // 32 == block % 2]
            third = first + max(t for t in ours if t % 7 < 3)
            sums.append(fold(0, first + max(ours), third % 2**16, third, first + 19))
        launches.append((shape, "", sums))
    write(
        "last_stays",
        "All threads of a warp, or some of them, store at one address of shared or global memory, in each block another: what the last of them\n"
        "stores stays (ours: the manual leaves it open which).",
        launches,
        "    .shared .align 16 .b8 mine[16];\n    .global .align 8 .b8 cells[64];\n",
        body,
        notes="// FINDS: race-write-write: this is what it shows\n",
    )


def matches():
    """Matches of several warps, with members of several kinds."""
    value32 = lambda i: (i * 5 // 3) % 7 + 0x80000000 * (i % 3 == 1)
    value64 = lambda i: ((i // 2) % 5 << 33 | 6) + (i % 2 << 63)
    body = """mul.lo.u32 %w2, %i, 5;
div.u32 %w2, %w2, 3;
rem.u32 %w2, %w2, 7;
rem.u32 %w3, %i, 3;
setp.eq.u32 %p, %w3, 1;
@%p add.u32 %w2, %w2, 0x80000000;
shr.u32 %w4, %i, 1;
rem.u32 %w4, %w4, 5;
shl.b32 %w4, %w4, 1;
and.b32 %w5, %i, 1;
shl.b32 %w5, %w5, 31;
or.b32 %w5, %w5, %w4;
mov.b64 %d1, {6, %w5};
and.b32 %w6, %thread, 1;
setp.eq.u32 %q, %w6, 1;
selp.b32 %w7, 0xaaaaaaaa, 0x55555555, %q;
shr.u32 %w8, %thread, 5;
selp.b32 %w9, %w8, %w2, %q;
mov.u32 %w10, 0xffffffff;
"""
    def folded(destination):
        return f"mad.lo.u32 %sum, %sum, 31, {destination};\n"

    for members in ("%w10", "0xffffffff", "%w7"):
        body += f"match.any.sync.b32 %w0, %w2, {members};\n" + folded("%w0")
        body += f"match.any.sync.b64 %w0, %d1, {members};\n" + folded("%w0")
        for source in ("%w2", "%w9", "%w8"):
            body += f"match.all.sync.b32 %w0|%p, {source}, {members};\nselp.u32 %w1, 1, 0, %p;\n" + folded("%w0") + folded("%w1")
        body += f"match.all.sync.b32 %w0, %w9, {members};\n" + folded("%w0")
    # The upper part of each warp alone.
    body += """and.b32 %w11, %thread, 31;
setp.lt.u32 %p, %w11, 11;
@%p bra JOIN;
match.any.sync.b32 %w0, %w2, 0xfffff800;
mad.lo.u32 %sum, %sum, 31, %w0;
match.all.sync.b32 %w0, %w8, 0xfffff800;
mad.lo.u32 %sum, %sum, 31, %w0;
JOIN:
"""
    launches = []
    for shape in [(4, 64), (2, 80), (1, 176), (2, 36)]:
        grid, block = shape
        sums = []
        for thread, i in threads(shape):
            warp = [t for t in range(thread // 32 * 32, min(thread // 32 * 32 + 32, block))]
            lane = lambda t: t % 32
            index = lambda t: i - thread + t
            odd = lambda t: t // 32 if t % 2 else value32(index(t))
            total = 0
            for members in (0xFFFFFFFF, 0xFFFFFFFF, 0xAAAAAAAA if thread % 2 else 0x55555555):
                among = [t for t in warp if members >> lane(t) & 1]

                def any_(value):
                    return sum(1 << lane(t) for t in among if value(t) == value(thread))

                def all_(value):
                    same = all(value(t) == value(thread) for t in among)
                    return (sum(1 << lane(t) for t in among), 1) if same else (0, 0)

                total = fold(total, any_(lambda t: value32(index(t))), any_(lambda t: value64(index(t))))
                for value in (lambda t: value32(index(t)), odd, lambda t: t // 32):
                    total = fold(total, *all_(value))
                total = fold(total, all_(odd)[0])
            if thread % 32 >= 11:
                among = [t for t in warp if lane(t) >= 11]
                total = fold(total, sum(1 << lane(t) for t in among if value32(index(t)) == value32(i)))
                total = fold(total, sum(1 << lane(t) for t in among))
            sums.append(total)
        launches.append((shape, "", sums))
    write(
        "match_of_warps",
        "match.any and match.all of 32 and 64 bits in several warps, the last of them not whole: all lanes, every second one, and those that\n"
        "come by one way; values that differ in their uppermost bits alone.",
        launches,
        "",
        body,
    )


def branches():
    """A table of branch targets that lanes choose from at random."""
    count = 13
    names = [f"W{n}" for n in range(count)]
    body = f"mul.lo.u32 %w2, %i, 0x9e3779b1;\nshr.u32 %w2, %w2, 17;\nrem.u32 %w2, %w2, {count};\nmov.u32 %w5, 0;\nAGAIN:\n"
    body += f"ways: .branchtargets {', '.join(names)};\nbrx.idx %w2, ways;\n"
    for n, name in enumerate(names):
        # Every third falls into the next one.
        body += f"{name}:\nmad.lo.u32 %sum, %sum, 31, {n + 1};\n" + ("" if n % 3 == 0 or n == count - 1 else "bra JOIN;\n")
    body += f"""JOIN:
mad.lo.u32 %w2, %w2, 7, %thread;
rem.u32 %w2, %w2, {count};
add.u32 %w5, %w5, 1;
setp.lt.u32 %p, %w5, 4;
@%p bra AGAIN;
"""
    launches = []
    for shape in [(6, 64), (4, 80), (1, 333), (9, 30)]:
        sums = []
        for thread, i in threads(shape):
            value, way = 0, (i * 0x9E3779B1 % WORD >> 17) % count
            for _ in range(4):
                value = fold(value, way + 1)
                if way % 3 == 0 and way != count - 1:
                    value = fold(value, way + 2)
                way = (way * 7 + thread) % count
            sums.append(value)
        launches.append((shape, "", sums))
    write(
        "brx_idx_scattered",
        "A table of 13 targets that lanes choose from at random, four times; every third falls through into the next.",
        launches,
        "",
        body,
    )


def copies():
    """cp.async from and to rows of bytes, of all lanes and of some, waited for by all and by some."""
    body = """mov.u32 %w4, mine;
mul.wide.u32 %d1, %thread, 16;
add.s64 %at, %table, %d1;
mad.lo.u32 %w5, %thread, 16, %w4;
cp.async.cg.shared.global [%w5], [%at+16], 16;
cp.async.commit_group;
mul.wide.u32 %d1, %thread, 4;
add.s64 %d2, %table, %d1;
mad.lo.u32 %w6, %thread, 4, %w4;
rem.u32 %w3, %thread, 21;
setp.lt.u32 %p, %w3, 13;
@%p cp.async.ca.shared.global [%w6+2048], [%d2+256], 4;
cp.async.commit_group;
xor.b32 %w7, %thread, 5;
mad.lo.u32 %w8, %w7, 8, %w4;
mul.wide.u32 %d1, %thread, 8;
add.s64 %d3, %table, %d1;
cp.async.ca.shared.global [%w8+2560], [%d3+8], 8;
cp.async.commit_group;
and.b32 %w9, %thread, 3;
setp.eq.u32 %q, %w9, 2;
@%q bra OTHERS;
cp.async.wait_group 1;
bra JOIN;
OTHERS:
cp.async.wait_group 0;
JOIN:
"""
    for offset, address in ((0, "%w5"), (4, "%w5"), (8, "%w5"), (12, "%w5"), (2048, "%w6"), (2560, "%w8"), (2564, "%w8")):
        body += f"ld.shared.u32 %w0, [{address}+{offset}];\nmad.lo.u32 %sum, %sum, 31, %w0;\n"
    body += """cp.async.wait_all;
ld.shared.u32 %w0, [%w8+2560];
mad.lo.u32 %sum, %sum, 31, %w0;
bar.sync 0;
mul.lo.u32 %w7, %thread, 11;
rem.u32 %w7, %w7, 61;
mad.lo.u32 %w10, %w7, 4, %w4;
ld.shared.u32 %w0, [%w10+2048];
mad.lo.u32 %sum, %sum, 31, %w0;
bar.sync 0;
mul.wide.u32 %d1, %w7, 16;
add.s64 %at, %table, %d1;
setp.gt.u32 %p, %thread, 40;
@%p cp.async.cg.shared.global [%w5], [%at], 16;
cp.async.wait_all;
ld.shared.u32 %w0, [%w5+8];
mad.lo.u32 %sum, %sum, 31, %w0;
"""
    launches = []
    for shape in [(2, 64), (1, 120), (1, 100), (3, 16)]:
        block = shape[1]
        # Two threads change places by `xor 5`: blocks are multiples of 4, so one of them may be outside.
        sums = []
        for thread, i in threads(shape):
            word = lambda at: element("u32", at)
            value = fold(0, *(word(16 * thread + 16 + 4 * k) for k in range(4)))
            four = lambda t: word(4 * t + 256) if t < block and t % 21 < 13 else 0
            value = fold(value, four(thread))
            early = thread % 4 == 2
            pair = [word(8 * thread + 8 + 4 * k) for k in range(2)]
            value = fold(value, *(pair if early else (0, 0)))
            value = fold(value, pair[0])
            value = fold(value, four(thread * 11 % 61))
            value = fold(value, word(thread * 11 % 61 * 16 + 8) if thread > 40 else word(16 * thread + 24))
            sums.append(value)
        launches.append((shape, "", sums))
    write(
        "cp_async_rows",
        "cp.async of 16, 8 and 4 bytes from rows of global memory to rows of shared memory and to places that change by pairs, of all threads\n"
        "and of some. Every fourth thread waits for all copies, the others for all groups but the last, which reads as the zeros of fresh\n"
        "shared memory. At last from places without a pattern.",
        launches,
        "    .shared .align 16 .b8 mine[4096];\n",
        body,
        notes="// FINDS: copy-not-awaited: it looks at what is not there yet\n// FINDS: uninitialized-output: shared memory that no copy goes to\n",
    )


def tiles():
    """ldmatrix of several warps, whose rows lie in any order."""
    body = """mov.u32 %w4, mine;
mul.wide.u32 %d1, %thread, 16;
add.s64 %at, %table, %d1;
mul.wide.u32 %d1, %block, 512;
add.s64 %at, %at, %d1;
ld.global.v4.u32 {%w0, %w1, %w2, %w3}, [%at];
mad.lo.u32 %w5, %thread, 16, %w4;
st.shared.v4.u32 [%w5], {%w0, %w1, %w2, %w3};
bar.sync 0;
mul.lo.u32 %w6, %thread, 13;
add.u32 %w6, %w6, 3;
and.b32 %w6, %w6, 31;
mad.lo.u32 %w6, %w6, 16, %w4;
and.b32 %w7, %thread, 32;
mad.lo.u32 %w7, %w7, 16, %w6;
"""
    rules = []
    for count in (1, 2, 4):
        for transposed in (False, True):
            for address in ("%w5", "%w7"):
                registers = [f"%w{8 + k}" for k in range(count)]
                trans = ".trans" if transposed else ""
                body += f"ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {{{', '.join(registers)}}}, [{address}];\n"
                body += "".join(f"mad.lo.u32 %sum, %sum, 31, {register};\n" for register in registers)
                rules.append((count, transposed, address))
    # Into the register that has the addresses, and of the upper warps alone.
    body += """setp.lt.u32 %p, %thread, 32;
@%p bra JOIN;
ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%w8, %w7}, [%w7];
mad.lo.u32 %sum, %sum, 31, %w8;
mad.lo.u32 %sum, %sum, 31, %w7;
JOIN:
"""
    launches = []
    for shape in [(3, 64), (1, 128), (2, 32)]:
        sums = []
        for thread, i in threads(shape):
            block, warp, lane = i // shape[1], thread // 32 * 32, thread % 32
            half = lambda row, column: element("u16", 512 * block + row * 16 + column * 2)
            place = {"%w5": lambda t: t, "%w7": lambda t: (t * 13 + 3) % 32 + (t & 32)}

            def register(k, transposed, address):
                row = lambda r: place[address](warp + 8 * k + r)
                low, high = lane % 4 * 2, lane % 4 * 2 + 1
                if transposed:
                    return half(row(low), lane // 4) | half(row(high), lane // 4) << 16
                return half(row(lane // 4), low) | half(row(lane // 4), high) << 16

            value = 0
            for count, transposed, address in rules:
                value = fold(value, *(register(k, transposed, address) for k in range(count)))
            if thread >= 32:
                value = fold(value, *(register(k, True, "%w7") for k in range(2)))
            sums.append(value)
        launches.append((shape, "", sums))
    write(
        "ldmatrix_of_warps",
        "ldmatrix of one, two and four matrices in several warps, as they are and transposed, whose rows lie one after the other and in\n"
        "another order; into the register that has the addresses, and of some warps alone.",
        launches,
        "    .shared .align 16 .b8 mine[2048];\n",
        body,
    )


SHARED.write()
strided()
narrow()
vectors()
last_stays()
matches()
branches()
copies()
tiles()
