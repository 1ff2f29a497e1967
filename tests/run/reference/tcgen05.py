"""Writes the kernels of `tcgen05` beside this folder, with the results that must come out.

    python3 tests/run/reference/tcgen05.py

The matrices hold small integers (scales powers of two and their like), so that every sum is exact. They are put into shared and tensor
memory as the manual's chapter "TensorCore 5th Generation Family Instructions" says; where it has a figure, as CUTLASS does
(make_umma_desc, tmem_frg, tmem_sf_frg, tmem_e_frg, Copy_Traits<SM100_TMEM_LOAD_*>, Copy_Traits<SM100_UTCCP_*>), case by case.
"""

import numpy as np

import matrix
import sparse
from archive import Arrays
from sparse import SMALL, sparse_matrix
from wgmma import swizzled

BITS = dict(f16=16, bf16=16, tf32=32, e4m3=8, e5m2=8, e2m3=6, e3m2=6, e2m1=4, s8=8, u8=8, packed=4)
SWIZZLES = {16: 0, "wide": 1, 128: 2, 64: 4, 32: 6}
TYPES = dict(f16=0, bf16=1, tf32=2, e4m3=0, e5m2=1, e2m3=3, e3m2=4, e2m1=5, u8=0, s8=1, packed=1)
RESULTS = dict(f16=0, f32=1, s32=2)


def place_bits(ty):
    """Elements of 4 and 6 bits have the room of a byte."""
    return 4 if ty == "packed" else max(8, BITS[ty])


def bits_of(ty, value):
    if ty in ("e2m1", "packed"):
        return SMALL["e2m1"][value]
    return sparse.encode(ty, value)


def unit_bytes(ty, values):
    """16 bytes of elements, those of less than a byte side by side at the beginning."""
    assert len(values) == 128 // place_bits(ty)
    packed = sum(bits_of(ty, value) << i * BITS[ty] for i, value in enumerate(values))
    return list(packed.to_bytes(16, "little"))


def along_k(numbers, ty, width):
    """Lines by k, k along the rows: bytes, leading and stride offset, and how many bytes 32 bytes of k are."""
    lines, k = numbers.shape
    per = 128 // place_bits(ty)
    units = k // per
    row = 16 if width == 16 else width
    data = np.zeros(lines * (units * 16 if width == 16 else width), np.uint8)
    for line in range(lines):
        for unit in range(units):
            if width == 16:
                at = (unit * (lines // 8) + line // 8) * 128 + line % 8 * 16
            else:
                assert units * 16 <= width
                at = line * row + swizzled(line, unit, width) * 16
            data[at : at + 16] = unit_bytes(ty, numbers[line, unit * per : (unit + 1) * per])
    if width == 16:
        return data, lines // 8 * 128, 128, 2 * (lines // 8) * 128
    return data, 16, 8 * width, 32


def across_k(numbers, ty, width):
    """The same with lines along the rows; a step is what 32 bytes of k are."""
    lines, k = numbers.shape
    per = 128 // place_bits(ty)
    units, of_step = lines // per, 256 // place_bits(ty)
    bytes_of_row = 128 if width == "wide" else width
    of_row = bytes_of_row // 16
    data = np.zeros(-(-units // of_row) * of_row * k * 16, np.uint8)
    for unit in range(units):
        for step in range(k):
            if width == 16:
                at = unit * k * 16 + step * 16
            elif width == "wide":
                # Pairs of units change places, by the number of the row of four.
                pair, part = divmod(unit % 8, 2)
                at = unit // 8 * k * 128 + step * 128 + (pair ^ step % 4) * 32 + part * 16
            else:
                at = unit // of_row * k * width + step * width + swizzled(step, unit % of_row, width) * 16
            data[at : at + 16] = unit_bytes(ty, numbers[unit * per : (unit + 1) * per, step])
    if width == 16:
        return data, 128, k * 16, of_step * 16
    return data, k * bytes_of_row, (4 if width == "wide" else 8) * bytes_of_row, of_step * bytes_of_row


def rows_of(group, m, lane):
    """Of a block's lane: the row of D (of the block), which of how many parts of the columns; nothing if it has none."""
    if (group, m) in ((1, 128), (2, 256)):
        return lane, 0, 1
    if (group, m) == (1, 64):
        return (lane // 32 * 16 + lane % 32, 0, 1) if lane % 32 < 16 else None
    if group == "ws":
        return lane % m, lane // m, 128 // m
    assert (group, m) == (2, 128)
    return lane % 64, lane // 64, 2


def metadata_place(ty, lane, chunk):
    """The lane, the column and the first bit of a chunk of the row in a lane."""
    if place_bits(ty) >= 16:
        return lane % 8 + chunk // 4 * 8 + lane // 16 * 16, 0, lane // 8 % 2 * 16 + chunk % 4 * 4
    return lane, chunk // 8, chunk % 8 * 4


def in_cells(ty, values):
    """A row of A in tensor memory: its words. Elements of 4 bits stand in the middle of their bytes, unless they are packed."""
    room, shift = place_bits(ty), 2 if ty == "e2m1" else 0
    packed = sum(bits_of(ty, value) << i * room + shift for i, value in enumerate(values))
    return [packed >> 32 * i & 0xFFFFFFFF for i in range(len(values) * room // 32)]


def powers(count):
    """Columns as parts whose number is a power of two: where each begins, and its number."""
    start = 0
    for bit in reversed(range(count.bit_length())):
        if count >> bit & 1:
            yield start, 1 << bit
            start += 1 << bit


class Kernel:
    """A kernel of 128 threads a block: an image of tensor memory is stored, something is done, and columns of it come out."""

    def __init__(self, name, image, blocks=1, columns=None):
        self.arrays = Arrays(name)
        self.image, self.blocks = image, blocks
        self.width = image[0].shape[1]
        self.columns = columns or max(32, self.width)
        self.data, self.shared, self.work, self.registers = "", "", "", ""

    def tile(self, label, parts):
        """Bytes of each block's shared memory."""
        size = len(parts[0])
        self.data += self.arrays.variable(f"in_{label}", "b8", np.concatenate(parts), str)
        self.shared += f".shared .align 1024 .b8 tile_{label}[{size}];\n"
        self.work += f"""    mov.u64 %from, in_{label};
    mad.wide.u32 %from, %rank, {size}, %from;
    mov.u32 %at, tile_{label};
    shl.b32 %i, %thread, 4;
    cvt.u64.u32 %wide, %i;
    add.u64 %from, %from, %wide;
    add.u32 %at, %at, %i;
copy_{label}:
    setp.lt.u32 %more, %i, {size};
    @!%more bra copied_{label};
    ld.global.v4.b32 {{%v0, %v1, %v2, %v3}}, [%from];
    st.shared.v4.b32 [%at], {{%v0, %v1, %v2, %v3}};
    add.u64 %from, %from, 2048;
    add.u32 %at, %at, 2048;
    add.u32 %i, %i, 2048;
    bra copy_{label};
copied_{label}:
"""

    def descriptor(self, label, leading, stride, width, offset=0):
        bits = leading >> 4 << 16 | stride >> 4 << 32 | 1 << 46 | SWIZZLES[width] << 61
        self.registers += f"    .reg .b64 %d{label};\n"
        return f"""    mov.u32 %at, tile_{label};
    add.u32 %at, %at, {offset};
    shr.u32 %at, %at, 4;
    cvt.u64.u32 %d{label}, %at;
    or.b64 %d{label}, %d{label}, {bits:#x};
"""

    def write(self, what, issue, expected):
        """issue: what thread 0 of block 0 does, completion told by its commit; expected: the first columns."""
        group, width, shown = self.blocks, self.width, expected[0].shape[1]
        space = f"cta_group::{group}"
        cells = self.arrays.variable("in_cells", "b32", np.concatenate(self.image).reshape(-1))
        text = f""".version 8.7
.target sm_100a
.address_size 64

{self.data}{cells}{self.shared}.shared .align 8 .b64 done;
.shared .align 4 .b32 place;

.visible .entry test(.param .u64 out)
{".reqntid 128" + chr(10) + ".reqnctapercluster 2" if group == 2 else ".reqntid 128"}
{{
    .reg .b32 %thread, %rank, %i, %at, %taddr, %mine, %idesc;
    .reg .b64 %out, %from, %wide;
    .reg .b32 %v<4>;
    .reg .b32 %c<{max(width, shown)}>;
    .reg .pred %more, %first, %leads;
{self.registers}    mov.u32 %thread, %tid.x;
    mov.u32 %rank, {"%cluster_ctarank" if group == 2 else "0"};
    setp.lt.u32 %first, %thread, 32;
    @%first tcgen05.alloc.{space}.sync.aligned.shared::cta.b32 [place], {self.columns};
    setp.eq.u32 %leads, %thread, 0;
    @%leads mbarrier.init.shared::cta.b64 [done], 1;
{self.work}    fence.proxy.async.shared::cta;
    bar.sync 0;
    ld.shared.b32 %taddr, [place];
    and.b32 %mine, %thread, 96;
    shl.b32 %mine, %mine, 16;
    add.u32 %mine, %mine, %taddr;
    mov.u64 %from, in_cells;
    mad.wide.u32 %from, %rank, {128 * width * 4}, %from;
    mad.wide.u32 %from, %thread, {width * 4}, %from;
"""
        text += "".join(f"    ld.global.b32 %c{i}, [%from+{4 * i}];\n" for i in range(width))
        for start, count in powers(width):
            part = "{" + ", ".join(f"%c{start + i}" for i in range(count)) + "}"
            text += f"    tcgen05.st.sync.aligned.32x32b.x{count}.b32 [%mine+{start}], {part};\n"
        text += """    tcgen05.wait::st.sync.aligned;
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
"""
        if group == 2:
            text += "    barrier.cluster.arrive.aligned;\n    barrier.cluster.wait.aligned;\n    setp.eq.and.u32 %leads, %rank, 0, %leads;\n"
        commit = f"tcgen05.commit.{space}.mbarrier::arrive::one.shared::cluster"
        commit += ".multicast::cluster.b64 [done], 3;" if group == 2 else ".b64 [done];"
        text += f"    @!%leads bra wait;\n{issue}    {commit}\n"
        scope = ".acquire.cluster" if group == 2 else ""
        text += f"""wait:
    mbarrier.try_wait.parity{scope}.shared::cta.b64 %more, [done], 0;
    @!%more bra wait;
    tcgen05.fence::after_thread_sync;
"""
        for start, count in powers(shown):
            part = "{" + ", ".join(f"%c{start + i}" for i in range(count)) + "}"
            text += f"    tcgen05.ld.sync.aligned.32x32b.x{count}.b32 {part}, [%mine+{start}];\n"
        text += """    tcgen05.wait::ld.sync.aligned;
    ld.param.u64 %out, [out];
    mad.lo.u32 %i, %rank, 128, %thread;
"""
        text += f"    mad.wide.u32 %out, %i, {4 * shown}, %out;\n"
        text += "".join(f"    st.global.b32 [%out+{4 * i}], %c{i};\n" for i in range(shown))
        text += f"""    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    @%first tcgen05.relinquish_alloc_permit.{space}.sync.aligned;
    @%first tcgen05.dealloc.{space}.sync.aligned.b32 %taddr, {self.columns};
    ret;
}}
"""
        out = self.arrays.expected(0, np.concatenate(expected).reshape(-1))
        run = f"--grid {group} --block 128 --arg u32[{128 * group}x{shown}]"
        self.arrays.kernel(what + ["Written by reference/tcgen05.py."], run, out, text)


def result_bits(ty, value):
    if ty == "f16":
        return int(np.float16(value).view(np.uint16))
    if ty == "f32":
        return int(np.float32(value).view(np.uint32))
    return int(value) & 0xFFFFFFFF


SCALE_VALUES = {
    "ue8m0": {125: 0.25, 126: 0.5, 127: 1, 128: 2, 129: 4},
    # With a sign that does not count.
    "ue4m3": {0x30: 0.5, 0x34: 0.75, 0x38: 1, 0xBC: 1.5, 0x40: 2, 0x44: 3},
}


def mma(
    name, kind, m, n, a, b, d, a_width, b_width, group=1, steps=1, a_across=False, b_across=False, negate=(0, 0), add=True, divide=0,
    disabled=None, selector=None, scales=None, ids=(0, 0), saturate=False, lane=0, collector="", ws=False, ashift=False, zero=None,
):
    """a_width 0: A in tensor memory; with a selector, half of A; scales: their type, and how many a row has; lane: where D begins."""
    rng = np.random.default_rng(m * n + steps + len(name))
    is_sparse = selector is not None
    held = 256 // place_bits(a)
    k = held * (2 if is_sparse else 1)
    limits = matrix.limits
    per_block, columns_of_block = m // group, n // group
    stored = rng.integers(limits(a)[0], limits(a)[1] + 1, (m, held * steps))
    am = stored
    if is_sparse:
        assert steps == 1
        matrix.BITS["packed"] = 4
        am, stored, nibbles = sparse_matrix(rng, stored, place_bits(a), True)
    # A start in each part of D, columns that are skipped and used by turns, and by how many columns B is shifted.
    starts_of_parts, skip, use, shifted = zero or ([], 1, 1, 0)
    # Shared memory has more columns than are taken.
    more = 16 if shifted else 0
    bm = rng.integers(limits(b)[0], limits(b)[1] + 1, (k * steps, n + more))
    # The image of tensor memory: D, then A, metadata, scales.
    rows = {}
    for at in range(128):
        found = rows_of("ws" if ws else group, m, at)
        if found:
            rows[at + lane] = found
    parts = max(part for _, _, part in rows.values())
    skipped = np.zeros(n, bool)
    for part, (first_skips, passed) in enumerate(starts_of_parts):
        spans = [("skip", skip), ("use", use)]
        if not first_skips:
            spans.reverse()
        pattern = [name == "skip" for name, length in spans for _ in range(length)]
        for column in range(n // parts):
            skipped[part * (n // parts) + column] = pattern[(passed + column) % len(pattern)]
    width = n // parts
    needs = [("d", width)]
    if not a_width:
        needs.append(("a", 8 * steps))
    if is_sparse:
        needs.append(("e", selector + (1 if place_bits(a) >= 16 else 2)))
    if scales:
        needs += [("sa", -(-per_block // 32)), ("sb", -(-width // 32))]
    starts, at = {}, 0
    for label, count in needs:
        starts[label] = at
        at += count
    total = at
    image = [rng.integers(0, 2**32, (128, total), dtype=np.uint64) for _ in range(group)]
    limit = 200 if d == "f16" else 1000
    cm = rng.integers(-limit, limit + 1, (m, n)) << divide
    if saturate:
        cm = np.where(rng.integers(0, 2, cm.shape) == 0, 2**31 - 5, -(2**31) + 5)
    scale_of = {}
    if scales:
        ty, vector = scales
        names = list(SCALE_VALUES[ty])
        for label, count in (("sa", m), ("sb", n)):
            chosen = rng.integers(0, len(names), (count, vector))
            scale_of[label] = np.array([[SCALE_VALUES[ty][names[i]] for i in line] for line in chosen])
            for line in range(count):
                value = sum(names[i] << 8 * j for j, i in enumerate(chosen[line])) << 8 * (ids[label == "sb"] // vector * vector)
                mask = ((1 << 8 * vector) - 1) << 8 * (ids[label == "sb"] // vector * vector)
                for block in range(group):
                    if label == "sa" and line // per_block != block:
                        continue
                    # A's lines are those of the block; of B all, half of them in each half of the lanes if D has them so.
                    local, lanes = (line % per_block, range(0, 128, 32)) if label == "sa" else (
                        line % width, range(line // width * 64, 128 if parts == 1 else line // width * 64 + 64, 32))
                    for first in lanes:
                        cell = image[block][first + local % 32]
                        word = int(cell[starts[label] + local // 32])
                        cell[starts[label] + local // 32] = word & ~mask & 0xFFFFFFFF | value
    expected = []
    for block in range(group):
        for at, (row, part, _) in rows.items():
            if not a_width:
                # Both halves of the lanes have the row.
                words = in_cells(a, stored[block * per_block + row])
                # Shifted, a row is where the next lane is; the last one is both.
                places = [at] if not ashift else [at + 1] if at < 126 else [127] if at == 126 else []
                for place in places:
                    image[block][place, starts["a"] : starts["a"] + len(words)] = words
            if is_sparse:
                for chunk, nibble in enumerate(nibbles[block * per_block + row]):
                    to, column, bit = metadata_place(a, at - lane, chunk)
                    word = int(image[block][to, starts["e"] + selector + column])
                    image[block][to, starts["e"] + selector + column] = word & ~(0xF << bit) | nibble << bit
            for column in range(width):
                image[block][at, column] = result_bits(d, cm[block * per_block + row, part * width + column])
        after = image[block][:, :width].copy()
        for at, (row, part, _) in rows.items():
            if disabled and disabled[block * 4 + at // 32] >> at % 32 & 1:
                continue
            line = am[block * per_block + (126 if ashift and row == 127 else row)].astype(np.float64)
            if scales:
                line = line * np.repeat(scale_of["sa"][block * per_block + row], k // scales[1])
            for column in range(width):
                of_b = bm[:, part * width + column + shifted].astype(np.float64) * (not skipped[part * width + column])
                if scales:
                    of_b = of_b * np.repeat(scale_of["sb"][part * width + column], k // scales[1])
                total_sum = float(line @ of_b) * (-1) ** sum(negate)
                if add:
                    total_sum += float(cm[block * per_block + row, part * width + column]) / (1 << divide)
                if d == "s32":
                    total_sum = int(total_sum)
                    if saturate:
                        total_sum = max(-(2**31), min(2**31 - 1, total_sum))
                after[at, column] = result_bits(d, total_sum)
        expected.append(after)
    kernel = Kernel(name, image, group, max(32, 1 << (total - 1).bit_length()))
    issue = ""
    advances = {}
    sides = [("b", bm.T, b, b_width, b_across, columns_of_block + more)]
    if a_width:
        sides.append(("a", stored, a, a_width, a_across, per_block))
    for label, numbers, ty, side_width, across, lines in sides:
        tiles = [(across_k if across else along_k)(numbers[lines * i : lines * (i + 1)], ty, side_width) for i in range(group)]
        kernel.tile(label, [tile[0] for tile in tiles])
        issue += kernel.descriptor(label, tiles[0][1], tiles[0][2], side_width)
        advances[label] = tiles[0][3] * (k // held if label == "b" else 1)
    idesc = TYPES[a] << 7 | TYPES[b] << 10 | negate[0] << 13 | negate[1] << 14 | int(a_across) << 15 | int(b_across) << 16
    idesc |= n // 8 << 17 | m // 16 << 24 | int(is_sparse) << 2 | (selector or 0)
    if scales:
        idesc |= int(scales[0] == "ue8m0") << 23 | ids[0] << 29 | ids[1] << 4
    else:
        idesc |= RESULTS[d] << 4 | int(saturate) << 3
    kernel.registers += "    .reg .b32 %d, %a, %e, %sa, %sb;\n    .reg .b32 %l<8>;\n    .reg .pred %adds;\n    .reg .b64 %zero;\n"
    issue += f"    mov.u32 %idesc, {idesc:#x};\n    setp.eq.u32 %adds, {int(add)}, 1;\n    add.u32 %d, %taddr, {lane << 16};\n"
    if not a_width:
        issue += f"    add.u32 %a, %taddr, {starts['a'] + (lane << 16)};\n"
    operands_of_lanes = ""
    if disabled:
        issue += "".join(f"    mov.u32 %l{i}, {word:#x};\n" for i, word in enumerate(disabled))
        operands_of_lanes = ", {" + ", ".join(f"%l{i}" for i in range(len(disabled))) + "}"
    block_scale = ""
    if scales:
        block_scale = ".block_scale" + ("" if kind != "mxf4nvf4" else f".scale_vec::{scales[1]}X")
    instruction = f"tcgen05.mma{'.ws' if ws else ''}{'.sp' if is_sparse else ''}.cta_group::{group}.kind::{kind}{block_scale}{'.ashift' if ashift else ''}{collector}"
    if zero:
        # Bit 39: there is a mask.
        bits = int(bool(starts_of_parts)) << 39 | shifted << 56
        for part, (first_skips, passed) in enumerate(starts_of_parts):
            bits |= passed << 8 * part | int(first_skips) << 32 + part
        issue += f"    mov.b64 %zero, {bits | skip - 1 << 40 | use - 1 << 48:#x};\n"
    for step in range(steps):
        operands = ["[%d]", "%da" if a_width else "[%a]", "%db"]
        if is_sparse:
            issue += f"    add.u32 %e, %taddr, {starts['e']};\n"
            operands.append("[%e]")
        operands.append("%idesc")
        if scales:
            issue += f"    add.u32 %sa, %taddr, {starts['sa']};\n    add.u32 %sb, %taddr, {starts['sb']};\n"
            operands += ["[%sa]", "[%sb]"]
        line = ", ".join(operands) + operands_of_lanes + (", %adds" if step == 0 else ", 1") + (f", {divide}" if divide else "") + (", %zero" if zero else "")
        issue += f"    {instruction} {line};\n"
        if step + 1 < steps:
            for label, advance in advances.items():
                issue += f"    add.u64 %d{label}, %d{label}, {advance >> 4};\n"
            if not a_width:
                issue += "    add.u32 %a, %a, 8;\n"
    where = lambda side, across: "in tensor memory" if not side else ("not swizzled" if side == 16 else f"swizzled by {'32 in 128' if side == 'wide' else side} bytes") + (", transposed" if across else "")
    what = [
        f"{instruction}: {m} x {n}, {a} times {b} to {d}.",
        f"A {where(a_width, a_across)}; B {where(b_width, b_across)}. Small integers; expected from numpy.",
    ]
    kernel.write(what, issue, expected)


# Lane, column of the cell that a register of a lane holds, by shape.
SHAPES = {
    "32x32b": (32, 1, lambda t, r: (t, r)),
    "16x64b": (16, 1, lambda t, r: (t // 4 + (8 if t & 1 else 0), 2 * r + (t >> 1 & 1))),
    "16x128b": (16, 2, lambda t, r: (t // 4 + 8 * (r & 1), r // 2 * 4 + t % 4)),
    "16x256b": (16, 4, lambda t, r: (t // 4 + 8 * (r >> 1 & 1), r // 4 * 8 + t % 4 * 2 + (r & 1))),
    "16x32bx2": (16, 1, None),
}


def move(name, shape, num, packed, is_load, upper=0, split=0):
    """Loads or stores of one shape: every warp those of its lanes, the upper half of them if `upper` is 16."""
    rng = np.random.default_rng(num + len(name))
    lanes, registers, cell = SHAPES[shape]
    registers *= num
    step = 2 if packed else 1
    if shape == "16x32bx2":
        cell = lambda t, r: (t % 16, r)
        columns = max(num * step, split + num * step)
    else:
        columns = registers * 32 // lanes * step
    width = 1 << (columns - 1).bit_length()

    def cells(thread, register):
        t, first = thread % 32, thread // 32 * 32 + upper
        lane, column = cell(t, register)
        column = column * step + (split if shape == "16x32bx2" and t >= 16 else 0)
        return [(first + lane, column + i) for i in range(step)]

    before = rng.integers(0, 2**32, (128, width), dtype=np.uint64)
    vector = "{" + ", ".join(f"%r{i}" for i in range(registers)) + "}"
    suffix = (".pack::16b" if is_load else ".unpack::16b") if packed else ""
    spelling = f"tcgen05.{'ld' if is_load else 'st'}.sync.aligned.{shape}.x{num}{suffix}.b32"
    place = f"[%mine]{f', {split}' if shape == '16x32bx2' else ''}"
    registers_in = rng.integers(0, 2**32, (128, registers), dtype=np.uint64)
    if is_load:
        expected = np.zeros((128, registers), np.uint64)
        for thread in range(128):
            for register in range(registers):
                parts = [int(before[at]) for at in cells(thread, register)]
                expected[thread, register] = parts[0] & 0xFFFF | (parts[1] & 0xFFFF) << 16 if packed else parts[0]
        shown = registers
    else:
        expected = before.copy()
        for thread in range(128):
            for register in range(registers):
                word = int(registers_in[thread, register])
                for i, at in enumerate(cells(thread, register)):
                    expected[at] = word >> 16 * i & 0xFFFF if packed else word
        shown = width
    arrays = Arrays(name)
    image = "{" + ", ".join(f"%c{i}" for i in range(width)) + "}"
    text = f""".version 8.6
.target sm_100a
.address_size 64

{arrays.variable("in_cells", "b32", before.reshape(-1))}{arrays.variable("in_registers", "b32", registers_in.reshape(-1))}.shared .align 4 .b32 place;

.visible .entry test(.param .u64 out)
.reqntid 128
{{
    .reg .b32 %thread, %taddr, %row, %mine;
    .reg .b64 %out, %from;
    .reg .b32 %c<{width}>;
    .reg .b32 %r<{registers}>;
    .reg .pred %first;
    mov.u32 %thread, %tid.x;
    setp.lt.u32 %first, %thread, 32;
    @%first tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], {max(32, width)};
    bar.sync 0;
    ld.shared.b32 %taddr, [place];
    and.b32 %row, %thread, 96;
    shl.b32 %row, %row, 16;
    add.u32 %row, %row, %taddr;
    add.u32 %mine, %row, {upper << 16};
    mov.u64 %from, in_cells;
    mad.wide.u32 %from, %thread, {width * 4}, %from;
"""
    text += "".join(f"    ld.global.b32 %c{i}, [%from+{4 * i}];\n" for i in range(width))
    text += f"    tcgen05.st.sync.aligned.32x32b.x{width}.b32 [%row], {image};\n    tcgen05.wait::st.sync.aligned;\n"
    text += f"    mov.u64 %from, in_registers;\n    mad.wide.u32 %from, %thread, {registers * 4}, %from;\n"
    text += "".join(f"    ld.global.b32 %r{i}, [%from+{4 * i}];\n" for i in range(registers))
    if is_load:
        text += f"    {spelling} {vector}, {place};\n    tcgen05.wait::ld.sync.aligned;\n"
    else:
        text += f"    {spelling} {place}, {vector};\n    tcgen05.wait::st.sync.aligned;\n"
        text += f"    tcgen05.ld.sync.aligned.32x32b.x{width}.b32 {image}, [%row];\n    tcgen05.wait::ld.sync.aligned;\n"
    letter = "r" if is_load else "c"
    text += f"    ld.param.u64 %out, [out];\n    mad.wide.u32 %out, %thread, {4 * shown}, %out;\n"
    text += "".join(f"    st.global.b32 [%out+{4 * i}], %{letter}{i};\n" for i in range(shown))
    text += f"    bar.sync 0;\n    @%first tcgen05.dealloc.cta_group::1.sync.aligned.b32 %taddr, {max(32, width)};\n    ret;\n}}\n"
    what = [f"{spelling}, by four warps.", "Written by reference/tcgen05.py."]
    arrays.kernel(what, f"--block 128 --arg u32[128x{shown}]", arrays.expected(0, expected.reshape(-1)), text)


# Rows, units of 16 bytes of a row, and the lanes that a row goes to.
COPIES = {
    "128x256b": (128, 2, lambda row: [row]),
    "128x128b": (128, 1, lambda row: [row]),
    "4x256b": (4, 2, lambda row: [32 * row]),
    "64x128b.warpx2::02_13": (64, 1, lambda row: [row, row + 64]),
    "64x128b.warpx2::01_23": (64, 1, lambda row: [row % 32 + 64 * (row // 32), row % 32 + 64 * (row // 32) + 32]),
    "32x128b.warpx4": (32, 1, lambda row: [row, row + 32, row + 64, row + 96]),
}


def copy(name, shape, width, padded=None, lane=0, group=1):
    rng = np.random.default_rng(len(name) + width)
    rows, units, lanes = COPIES[shape]
    image = [rng.integers(0, 2**32, (128, 16), dtype=np.uint64) for _ in range(group)]
    expected, tiles = [], []
    for block in range(group):
        after = image[block].copy()
        line = max(units * 16, width)
        tile = np.zeros(-(-rows // 8) * 8 * line, np.uint8)
        for row in range(rows):
            for unit in range(units):
                raw = rng.integers(0, 256, 16, dtype=np.uint8)
                if width == 16:
                    at = unit * -(-rows // 8) * 128 + row // 8 * 128 + row % 8 * 16
                else:
                    at = row * width + swizzled(row, unit, width) * 16
                tile[at : at + 16] = raw
                number = int.from_bytes(raw.tobytes(), "little")
                if padded:
                    elements = [number >> padded * i & (1 << padded) - 1 for i in range(16)]
                    number = sum(element << 8 * i + (2 if padded == 4 else 0) for i, element in enumerate(elements))
                for to in lanes(row):
                    for i in range(4):
                        after[to + lane, 4 + unit * 4 + i] = number >> 32 * i & 0xFFFFFFFF
        expected.append(after)
        tiles.append(tile)
    kernel = Kernel(name, image, group)
    kernel.tile("x", tiles)
    issue = kernel.descriptor("x", -(-rows // 8) * 128 if width == 16 else 16, 128 if width == 16 else 8 * width, width)
    suffix = {None: "", 4: ".b8x16.b4x16_p64", 6: ".b8x16.b6x16_p32"}[padded]
    spelling = f"tcgen05.cp.cta_group::{group}.{shape}{suffix}"
    issue += f"    {spelling} [%taddr+{4 + (lane << 16)}], %dx;\n"
    kernel.write([f"{spelling}: rows of shared memory{'' if width == 16 else f', swizzled by {width} bytes'}, to lanes."], issue, expected)


def shift(name, lane):
    rng = np.random.default_rng(7)
    image = [rng.integers(0, 2**32, (128, 16), dtype=np.uint64)]
    after = image[0].copy()
    after[lane : lane + 31, 4:12] = image[0][lane + 1 : lane + 32, 4:12]
    issue = f"    tcgen05.shift.cta_group::1.down [%taddr+{4 + (lane << 16)}];\n"
    what = ["tcgen05.shift: 32 bytes of 31 lanes get those of the next one. (Which way is ours: see docs/tcgen05.md.)"]
    Kernel(name, image).write(what, issue, [after])


def main():
    for is_load, of in ((True, "ld"), (False, "st")):
        move(f"tcgen05_{of}_32x32b", "32x32b", 16, False, is_load)
        move(f"tcgen05_{of}_32x32b_packed", "32x32b", 4, True, is_load)
        move(f"tcgen05_{of}_16x64b", "16x64b", 8, False, is_load, upper=16)
        move(f"tcgen05_{of}_16x64b_packed", "16x64b", 2, True, is_load)
        move(f"tcgen05_{of}_16x128b", "16x128b", 4, False, is_load)
        move(f"tcgen05_{of}_16x256b", "16x256b", 2, False, is_load, upper=16)
        move(f"tcgen05_{of}_16x256b_packed", "16x256b", 1, True, is_load)
        move(f"tcgen05_{of}_16x32bx2", "16x32bx2", 4, False, is_load, split=8)
        move(f"tcgen05_{of}_16x32bx2_packed", "16x32bx2", 2, True, is_load, split=5, upper=16)
    mma("tcgen05_f16", "f16", 128, 16, "f16", "f16", "f32", 128, 128, steps=4)
    mma("tcgen05_f16_m64", "f16", 64, 16, "f16", "f16", "f32", 32, 64, lane=16, add=False)
    mma("tcgen05_f16_halves", "f16", 64, 8, "f16", "f16", "f16", 64, 32, negate=(1, 0), divide=3)
    mma("tcgen05_bf16_transposed", "f16", 128, 32, "bf16", "bf16", "f32", 128, 64, a_across=True, b_across=True, negate=(1, 1))
    mma("tcgen05_f16_transposed_wide", "f16", 64, 32, "f16", "f16", "f32", 16, 16, a_across=True, b_across=True, steps=2)
    mma("tcgen05_f16_tensor", "f16", 128, 16, "f16", "f16", "f32", 0, 64, steps=2, collector=".collector::a::fill")
    mma("tcgen05_tf32", "tf32", 64, 8, "tf32", "tf32", "f32", 16, 32, disabled=[0x5A5A, 0xFFFF0000, 0x1234, 0x8001])
    mma("tcgen05_tf32_tensor", "tf32", 64, 8, "tf32", "tf32", "f32", 0, 64, lane=16, divide=1)
    mma("tcgen05_tf32_transposed", "tf32", 128, 32, "tf32", "tf32", "f32", "wide", "wide", a_across=True, b_across=True)
    mma("tcgen05_e4m3", "f8f6f4", 64, 16, "e4m3", "e5m2", "f32", 32, 16, steps=1)
    mma("tcgen05_e5m2_transposed", "f8f6f4", 128, 16, "e5m2", "e4m3", "f16", 64, 16, a_across=True, b_across=True, add=False)
    mma("tcgen05_e2m1_e3m2", "f8f6f4", 64, 8, "e2m1", "e3m2", "f32", 64, 128)
    mma("tcgen05_e2m3_tensor", "f8f6f4", 64, 8, "e2m3", "e2m1", "f32", 0, 32)
    mma("tcgen05_e2m1_tensor", "f8f6f4", 128, 16, "e2m1", "e4m3", "f32", 0, 128, negate=(0, 1))
    mma("tcgen05_s8", "i8", 64, 8, "s8", "u8", "s32", 64, 16, steps=2)
    mma("tcgen05_u8_satfinite", "i8", 128, 16, "u8", "s8", "s32", 0, 16, saturate=True)
    mma("tcgen05_f16_pair", "f16", 256, 16, "f16", "f16", "f32", 128, 32, group=2)
    mma("tcgen05_bf16_pair_m128", "f16", 128, 32, "bf16", "bf16", "f32", 32, 64, group=2, disabled=[0, 1 << 31, 0, 2, 4, 0, 8, 0])
    mma("tcgen05_f16_pair_tensor", "f16", 128, 16, "f16", "f16", "f16", 0, 32, group=2, add=False)
    mma("tcgen05_s8_pair", "i8", 256, 32, "s8", "s8", "s32", 16, 64, group=2)
    mma("tcgen05_sp_f16", "f16", 128, 8 * 2, "f16", "f16", "f32", 32, 64, selector=1)
    mma("tcgen05_sp_tf32_m64", "tf32", 64, 8, "tf32", "tf32", "f32", 16, 64, selector=0)
    mma("tcgen05_sp_e4m3_tensor", "f8f6f4", 128, 16, "e4m3", "e5m2", "f32", 0, 64, selector=2)
    mma("tcgen05_sp_u8", "i8", 64, 8, "u8", "u8", "s32", 32, 16, selector=0)
    mma("tcgen05_mxf8f6f4", "mxf8f6f4", 128, 16, "e4m3", "e2m1", "f32", 32, 64, scales=("ue8m0", 1), ids=(2, 1))
    mma("tcgen05_mxf4", "mxf4", 128, 40, "packed", "packed", "f32", 64, 32, scales=("ue8m0", 2), ids=(2, 0))
    mma("tcgen05_nvf4", "mxf4nvf4", 128, 16, "packed", "packed", "f32", 0, 128, scales=("ue4m3", 4), add=False)
    mma("tcgen05_nvf4_2x", "mxf4nvf4", 128, 8, "packed", "packed", "f32", 16, 16, scales=("ue8m0", 2), ids=(0, 2))
    mma("tcgen05_mxf8f6f4_pair", "mxf8f6f4", 256, 32, "e5m2", "e3m2", "f32", 64, 32, group=2, scales=("ue8m0", 1), ids=(0, 3))
    mma("tcgen05_mxf4_pair_m128", "mxf4", 128, 64, "packed", "packed", "f32", 32, 32, group=2, scales=("ue8m0", 2))
    mma("tcgen05_sp_mxf8f6f4", "mxf8f6f4", 128, 16, "e3m2", "e4m3", "f32", 32, 128, scales=("ue8m0", 1), selector=0)
    mma("tcgen05_sp_mxf4", "mxf4", 128, 16, "packed", "packed", "f32", 32, 64, scales=("ue8m0", 2), selector=0)
    mma("tcgen05_f16_shifted", "f16", 128, 16, "f16", "f16", "f32", 0, 32, ashift=True, collector=".collector::a::lastuse")
    mma("tcgen05_ws_f16", "f16", 64, 64, "f16", "f16", "f32", 32, 32, ws=True, collector=".collector::b1::fill")
    mma("tcgen05_ws_s8", "i8", 32, 64, "s8", "s8", "s32", 0, 32, ws=True, zero=([(0, 1), (1, 2), (0, 0), (1, 0)], 3, 5, 0))
    mma("tcgen05_ws_sp_e5m2", "f8f6f4", 32, 64, "e5m2", "e5m2", "f32", 32, 64, ws=True, selector=0)
    mma("tcgen05_ws_tf32", "tf32", 128, 64, "tf32", "tf32", "f32", 64, 32, ws=True, zero=([(1, 3)], 7, 12, 0), add=False)
    # As the manual's fourth example (9.7.16.4.3); spans, but no mask, as all bits zero have it; B along its columns.
    mma("tcgen05_ws_u8_offset", "i8", 32, 64, "u8", "u8", "s32", 32, 32, ws=True, zero=([(1, 0), (1, 1), (0, 2), (0, 1)], 3, 4, 2))
    mma("tcgen05_ws_f16_no_mask", "f16", 64, 64, "f16", "f16", "f32", 32, 32, ws=True, zero=([], 1, 1, 0))
    mma("tcgen05_ws_bf16_offset", "f16", 64, 64, "bf16", "bf16", "f32", 32, 32, ws=True, b_across=True, zero=([(1, 2), (0, 3)], 5, 6, 13))
    copy("tcgen05_cp_128x256b", "128x256b", 32)
    copy("tcgen05_cp_128x128b", "128x128b", 16, padded=6)
    copy("tcgen05_cp_4x256b", "4x256b", 16, lane=31)
    copy("tcgen05_cp_64x128b_02", "64x128b.warpx2::02_13", 16)
    copy("tcgen05_cp_64x128b_01", "64x128b.warpx2::01_23", 64, padded=4)
    copy("tcgen05_cp_32x128b", "32x128b.warpx4", 16)
    copy("tcgen05_cp_pair", "32x128b.warpx4", 16, group=2)
    shift("tcgen05_shift", 32)


if __name__ == "__main__":
    main()
