"""What textures return, in exact rational arithmetic: makes cases.txt, which tests/texture/fetch.rs runs on both engines.

Written from the PTX manual, the CUDA C++ Programming Guide ("Texture Fetching", "Cubemap Textures") and docs/textures.md, with
nothing of ptxvm: python3 model.py > cases.txt
"""

import itertools
import random
import struct
from fractions import Fraction as F
from math import floor, ceil, log2

FACES = "+x -x +y -y +z -z".split()
BITS = {"u8": 8, "u16": 16, "u32": 32, "s8": 8, "s16": 16, "s32": 32, "f16": 16, "f32": 32}


def bits_of(value):
    return struct.unpack("<I", struct.pack("<f", value))[0]


def float_of(bits):
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def rounded(x, fraction=23, bias=127, inf=0x7F800000):
    """An exact number as binary32 (or binary16): to nearest, ties to even."""
    sign = 1 if x < 0 else 0
    x = abs(x)
    if x == 0:
        return 0
    e = 0
    while x / F(2) ** e >= 2:
        e += 1
    while x / F(2) ** e < 1:
        e -= 1
    e = max(e, 1 - bias)
    n = x / F(2) ** (e - fraction)
    q, r = divmod(n, 1)
    q = int(q) + (1 if r > F(1, 2) or (r == F(1, 2) and int(q) & 1) else 0)
    result = (e + bias - 1) * (1 << fraction) + q
    result = min(result, inf)
    return result | sign << (31 if fraction == 23 else 15)


class Image:
    def __init__(self, geometry, channel, channels=1, extent=(1, 1, 1), layers=1, levels=1, samples=1, seed=1, linear=False):
        self.__dict__.update(locals())
        self.dims = {"1d": 1, "a1d": 1, "3d": 3}.get(geometry, 2)
        state = seed
        self.data = {}
        for level in range(levels):
            w, h, d = self.size(level)
            for layer, z, y, x, s, c in itertools.product(*map(range, (layers, d, h, w, samples, channels))):
                state = (state * 1664525 + 1013904223) % 2**32
                word = (state ^ state >> 15) & 0xFFFFFFFF
                if channel == "f32":
                    word = (word & 0x807FFFFF) | ((120 + (word >> 24 & 15)) << 23)
                elif channel == "f16":
                    word = (word & 0x83FF) | ((10 + (word >> 11 & 7)) << 10)
                self.data[level, layer, z, y, x, s, c] = word % 2 ** BITS[channel]

    def size(self, level):
        return [max(1, n >> level) for n in self.extent]

    def line(self):
        e = ",".join(map(str, self.extent))
        return (f"image: {self.geometry} {self.channel} channels={self.channels} extent={e} layers={self.layers} "
                f"levels={self.levels} samples={self.samples} seed={self.seed} linear={int(self.linear)}")


DEFAULT = dict(filter="point", mip="point", address=("clamp",) * 3, normalized=0, float=0, border=(0, 0, 0, 0), bias=0.0,
               min=0.0, max=1000.0, seamless=0)


def sampler_line(s):
    return (f"sampler: filter={s['filter']} mip={s['mip']} address={','.join(s['address'])} normalized={s['normalized']} "
            f"float={s['float']} border={','.join('%x' % b for b in s['border'])} bias={s['bias']} min={s['min']} "
            f"max={s['max']} seamless={s['seamless']}")


def is_float(image, s):
    return image.channel in ("f16", "f32") or (s["float"] and BITS[image.channel] <= 16)


def number(image, s, word):
    """What a stored channel is: a Fraction if it is read as a float, else an integer."""
    c, n = image.channel, BITS[image.channel]
    if c == "f32":
        return F(float_of(word))
    if c == "f16":
        return F(struct.unpack("<e", struct.pack("<H", word))[0])
    if c[0] == "s" and word >> (n - 1):
        word -= 1 << n
    if s["float"] and n <= 16:
        top = (1 << n) - 1 if c[0] == "u" else (1 << (n - 1)) - 1
        # A texel is a binary32 number before it is filtered.
        return F(float_of(rounded(max(F(word, top), F(-1)))))
    return word


def reduce(mode, i, n, normalized):
    """The texel that number i is, in the Guide's words: frac(x), 1 - frac(x) where floor(x) is odd, or the nearest within."""
    if mode in ("wrap", "mirror") and not normalized:
        mode = "clamp"
    if mode == "clamp":
        return min(max(i, 0), n - 1)
    if mode == "border":
        return i if 0 <= i < n else None
    turns, place = divmod(i, n)
    return n - 1 - place if mode == "mirror" and turns % 2 else place


def direction_of(face, s, t):
    """Where on the cube from -1 to 1 a place of a face is; s and t from -1 to 1."""
    return {0: (1, -t, -s), 1: (-1, -t, s), 2: (s, 1, t), 3: (s, -1, -t), 4: (s, -t, 1), 5: (-s, -t, -1)}[face]


def project(v):
    """Face, s and t (from 0 to 1), by trying every face: the one that the direction leaves the cube through."""
    for face in (4, 5, 2, 3, 0, 1):
        axis, sign = face // 2, 1 - 2 * (face % 2)
        if v[axis] * sign > 0 and abs(v[axis]) == max(map(abs, v)):
            hit = [F(c) / abs(v[axis]) for c in v]
            # Solve hit = direction_of(face, s, t), which is linear with coefficients of +-1.
            zero, one = direction_of(face, 0, 0), []
            for s, t in ((1, 0), (0, 1)):
                point = direction_of(face, s, t)
                k = next(i for i in range(3) if i != axis and point[i] != zero[i])
                one.append(hit[k] * (point[k] - zero[k]))
            return face, (one[0] + 1) / 2, (one[1] + 1) / 2


def across(face, x, y, n):
    """The texel of another face that lies nearest to where texel (x, y) of this one would lie."""
    place = direction_of(face, F(2 * x + 1, n) - 1, F(2 * y + 1, n) - 1)
    best = None
    for other, j, i in itertools.product(range(6), range(n), range(n)):
        if other == face:
            continue
        centre = direction_of(other, F(2 * i + 1, n) - 1, F(2 * j + 1, n) - 1)
        distance = sum((a - b) ** 2 for a, b in zip(place, centre))
        if best is None or distance < best[0]:
            best = (distance, (other, i, j))
    return best[1]


def texel(image, s, level, layer, face, at, sample):
    size, flt = image.size(level), is_float(image, s)
    one = F(1) if flt else 1

    def stored(f, x, y, z):
        first = layer * 6 + f if face is not None else layer
        values = [number(image, s, image.data[level, first, z, y, x, sample, c]) for c in range(image.channels)]
        return values + [0, 0, one][image.channels - 1:] if image.channels < 4 else values

    if face is not None and s["seamless"]:
        x, y, n = at[0], at[1], size[0]
        out = [not 0 <= c < n for c in (x, y)]
        if not any(out):
            return stored(face, x, y, 0)
        cx, cy = min(max(x, 0), n - 1), min(max(y, 0), n - 1)
        if all(out):
            three = [stored(face, cx, cy, 0)]
            for a, b in ((x, cy), (cx, y)):
                f, i, j = across(face, a, b, n)
                three.append(stored(f, i, j, 0))
            return [F(float_of(rounded(sum(c) / 3))) for c in zip(*three)]
        f, i, j = across(face, x, y, n)
        return stored(f, i, j, 0)
    inside = []
    for i in range(3):
        if i >= image.dims:
            inside.append(0)
            continue
        place = reduce("border" if image.linear else s["address"][i], at[i], size[i], s["normalized"])
        if place is None:
            border = (0, 0, 0, 0) if image.linear else s["border"]
            if flt:
                return [F(float_of(b)) for b in border]
            return [b - (b >> 31 << 32) if image.channel[0] == "s" else b for b in border]
        inside.append(place)
    return stored(face if face is not None else 0, *inside)


def weight(fraction):
    """9 bits, 8 of them behind the point: to nearest, halves up."""
    return F(floor(fraction * 256 + F(1, 2)), 256)


def fetch(image, s, coords, integer=False, lod=None, grad=None, offset=(0, 0, 0), ref=None, gather=None):
    """The four channels."""
    g, coords = image.geometry, list(coords)
    sample = min(coords.pop(0), image.samples - 1) if "ms" in g else 0
    index = coords.pop(0) if g[0] == "a" else 0
    cube = "cube" in g
    layer = min(index, image.layers // (6 if cube else 1) - 1)
    flt = is_float(image, s)
    filt = "point" if integer or not flt or image.linear else s["filter"]
    face = None
    base = image.size(0)
    if not integer:
        where = [F(c) for c in coords]
        if cube:
            face, *where = project(where)

    def compare(values):
        return values if ref is None else [F(1) if ref <= v else F(0) for v in values]

    def read(level, at):
        return compare(texel(image, s, level, layer, face, [a + o for a, o in zip(at, offset)], sample))

    def unscaled(level):
        n = image.size(level)
        if cube or s["normalized"]:
            return [w * k for w, k in zip(where, n)]
        return [w * F(k, b) for w, k, b in zip(where, n, base)]

    if integer:
        level = 0
        if lod is not None:
            level = min(max(lod, 0), image.levels - 1)
        return read(level, coords + [0, 0])
    if gather is not None:
        x, y = [floor(u - F(1, 2)) for u in unscaled(0)[:2]]
        return [read(0, (a, b, 0))[gather] for a, b in ((x, y + 1), (x + 1, y + 1), (x + 1, y), (x, y))]
    levels = [(0, F(1))]
    if grad is not None:
        scale = base if s["normalized"] else [1, 1, 1]
        lengths = [sum(float(c * k) ** 2 for c, k in zip(d, scale)) ** 0.5 for d in grad]
        lod = F(log2(max(lengths)))
    if lod is not None:
        lod = min(max(F(lod) + F(s["bias"]), F(s["min"])), F(s["max"]))
        lod = min(max(lod, F(0)), F(image.levels - 1))
        if s["mip"] == "point" or not flt:
            levels = [(ceil(lod + F(1, 2)) - 1, F(1))]
        else:
            w = weight(lod - floor(lod))
            levels = [(floor(lod), 1 - w), (min(floor(lod) + 1, image.levels - 1), w)]
    total = [F(0)] * 4
    for level, share in levels:
        if share == 0:
            continue
        u = unscaled(level)
        axes = []
        for i in range(image.dims):
            if filt == "point":
                axes.append([(floor(u[i]), F(1))])
            else:
                b = u[i] - F(1, 2)
                a = weight(b - floor(b))
                axes.append([(floor(b), 1 - a), (floor(b) + 1, a)])
        if filt == "point" and len([1 for _, w in levels if w]) == 1:
            return read(level, [a[0][0] for a in axes] + [0, 0])
        for corner in itertools.product(*axes):
            w = share
            for _, part in corner:
                w *= part
            if w:
                value = read(level, [i for i, _ in corner] + [0, 0])
                total = [t + w * v for t, v in zip(total, value)]
    return total


def registers(image, s, values, dtype, ref):
    flt = is_float(image, s) or ref is not None
    if dtype in ("f16", "f16x2"):
        half = [rounded(F(v), 10, 15, 0x7C00) for v in values]
        if dtype == "f16":
            return half
        return [half[0] | half[1] << 16, half[2] | half[3] << 16]
    return [rounded(F(v)) if flt else v % 2**32 for v in values]


rng = random.Random(20261122)


def f32(x):
    return float_of(bits_of(x))


def floats(low, high, steps=64):
    """A number that binary32 has, sometimes in the middle of a texel or at its edge."""
    return f32(rng.choice([rng.uniform(low, high), rng.randrange(int(low * steps), int(high * steps) + 1) / steps]))


def case(name, image, code, rows, **sampler):
    """Rows are (words, arguments of fetch, dtype)."""
    s = {**DEFAULT, **sampler}
    print(f"case: {name}")
    print(image.line())
    print(sampler_line(s))
    print(f"code: {code}")
    for words, arguments, dtype in rows:
        out = registers(image, s, fetch(image, s, **arguments), dtype, arguments.get("ref"))
        print("row:", " ".join("%x" % w for w in words), "=", " ".join("%x" % w for w in out))
    print()


def code(op, count, extra="", sampler="", dst="{%d0,%d1,%d2,%d3}"):
    vector = {1: "{%c0}", 2: "{%c0,%c1}", 3: "{%c0,%c1,%c2,%c2}", 4: "{%c0,%c1,%c2,%c3}"}[count]
    return f"{op} {dst}, [%h{sampler}, {vector}]{extra};"


COUNT = {"1d": 1, "2d": 2, "3d": 3, "a1d": 2, "a2d": 3, "cube": 3, "acube": 4, "2dms": 3, "a2dms": 4}
FULL = {"1d": (5, 1, 1), "2d": (5, 4, 1), "3d": (4, 3, 5), "a1d": (6, 1, 1), "a2d": (4, 3, 1), "cube": (4, 4, 1),
        "acube": (3, 3, 1)}


def random_coords(image, normalized, wide=1.5):
    g = image.geometry
    coords = []
    if g[0] == "a":
        coords.append(rng.randrange(0, image.layers + 2))
    if "cube" in g:
        return coords + [floats(-2, 2) or 0.25 for _ in range(3)]
    for i in range(image.dims):
        n = 1 if normalized else image.extent[i]
        coords.append(floats(-wide * n, (1 + wide) * n))
    return coords


def words_of(coords, image):
    skip = int(image.geometry[0] == "a") + int("ms" in image.geometry)
    return [c % 2**32 if i < skip or isinstance(c, int) else bits_of(c) for i, c in enumerate(coords)]


def sampled(name, image, count=6, op="tex", dtype="f32", **sampler):
    g = image.geometry
    rows = []
    for _ in range(count):
        c = random_coords(image, sampler.get("normalized", 0))
        rows.append((words_of(c, image), dict(coords=c), dtype))
    case(name, image, code(f"{op}.{g}.v4.{dtype}.f32", COUNT[g]), rows, **sampler)


seed = 0
MODES = ("clamp", "wrap", "mirror", "border")
border = tuple(map(bits_of, (0.5, -1.0, 2.0, 0.25)))
for g in FULL:
    layers = {"a1d": 3, "a2d": 3, "cube": 6, "acube": 12}.get(g, 1)
    for filter in ("point", "linear"):
        for normalized in (0, 1):
            if "cube" in g and not normalized:
                continue
            for mode in MODES:
                seed += 1
                channels = (1, 2, 4)[seed % 3]
                image = Image(g, "f32", channels, FULL[g], layers, seed=seed)
                address = (mode, MODES[seed % 4], MODES[seed % 3])
                sampled(f"{g} {filter} {mode}", image, filter=filter, address=address, normalized=normalized, border=border)
        if "cube" in g and filter == "linear":
            for n in (1, 2, 4):
                image = Image(g, "f32", 2, (n, n, 1), layers, seed=90 + n)
                sampled(f"{g} seamless {n}", image, 40, filter="linear", normalized=1, seamless=1)

# Formats: as they are, and normalised.
for channel in BITS:
    seed += 1
    image = Image("2d", channel, (1, 2, 4)[seed % 3], (7, 5, 1), seed=seed)
    dtype = {"u": "u32", "s": "s32", "f": "f32"}[channel[0]]
    sampled(f"format {channel}", image, dtype=dtype, address=("border", "clamp", "clamp"), border=(3, 2**32 - 4, 5, 6)
            if channel[0] != "f" else border, filter="linear")
    if channel[0] != "f":
        sampled(f"normalized {channel}", image, float=1, dtype="f32" if BITS[channel] < 32 else dtype, filter="linear")
    for half in ("f16", "f16x2"):
        if channel[0] == "f" or BITS[channel] < 32:
            rows = []
            for _ in range(4):
                c = random_coords(image, 0)
                rows.append((words_of(c, image), dict(coords=c), half))
            if half == "f16":
                text = code("tex.2d.v4.f16.f32", 2, dst="{%q0,%q1,%q2,%q3}")
                text += " cvt.u32.u16 %d0,%q0; cvt.u32.u16 %d1,%q1; cvt.u32.u16 %d2,%q2; cvt.u32.u16 %d3,%q3;"
            else:
                text = code("tex.2d.v2.f16x2.f32", 2, dst="{%d0,%d1}")
            case(f"{half} of {channel}", image, text, rows, float=1, filter="linear")

# Integer coordinates, linear memory, samples.
image = Image("1d", "u32", 2, (9, 1, 1), seed=7, linear=True)
rows = [([i % 2**32], dict(coords=[i], integer=True), "u32") for i in (-2, -1, 0, 4, 8, 9, 100, 2**31 - 1, -2**31)]
case("linear memory", image, code("tex.1d.v4.u32.s32", 1), rows, address=("clamp",) * 3, filter="linear", border=(9, 9, 9, 9))
for g, mode in (("2d", "clamp"), ("3d", "border"), ("a2d", "clamp"), ("2dms", "clamp"), ("a2dms", "border")):
    samples = 4 if "ms" in g else 1
    image = Image(g, "f32", 4, (4, 3, 5 if g == "3d" else 1), 3 if g[0] == "a" else 1, samples=samples, seed=11)
    rows = []
    for _ in range(8):
        c = [rng.randrange(-1, 6) for _ in range(image.dims)]
        first = ([rng.randrange(0, 6)] if samples > 1 else []) + ([rng.randrange(0, 5)] if g[0] == "a" else [])
        rows.append(([w % 2**32 for w in first + c], dict(coords=first + c, integer=True), "f32"))
    case(f"{g} of integers", image, code(f"tex.{g}.v4.f32.s32", COUNT[g]), rows, address=(mode,) * 3, border=border)

# Levels of detail.
for g, mip, filter, normalized in itertools.product(("1d", "2d", "3d", "a2d", "cube"), ("point", "linear"), ("point", "linear"), (0, 1)):
    if g == "cube" and not normalized:
        continue
    seed += 1
    extent = {"1d": (16, 1, 1), "2d": (16, 9, 1), "3d": (8, 6, 5), "a2d": (8, 5, 1), "cube": (8, 8, 1)}[g]
    image = Image(g, "f32", 1, extent, {"a2d": 2, "cube": 6}.get(g, 1), levels=4, seed=seed)
    rows = []
    for i in range(8):
        c = random_coords(image, normalized, 0.25)
        lod = floats(-1, 5)
        rows.append((words_of(c, image) + [bits_of(lod)], dict(coords=c, lod=lod), "f32"))
    n = COUNT[g]
    case(f"level {g}", image, code(f"tex.level.{g}.v4.f32.f32", n, f", %c{n}"), rows, filter=filter, mip=mip,
         normalized=normalized, bias=0.25 if seed % 2 else 0.0, min=0.5 if seed % 3 == 0 else 0.0, max=2.75)
image = Image("2d", "u8", 4, (16, 8, 1), levels=4, seed=5)
rows = [([i, 1, lod % 2**32], dict(coords=[i, 1], integer=True, lod=lod), "u32") for i, lod in ((0, 0), (3, 1), (3, 2), (2, 9), (5, -1))]
case("level of integers", image, code("tex.level.2d.v4.u32.s32", 2, ", %c2"), rows)
for normalized in (0, 1):
    for g in ("1d", "2d", "3d"):
        extent = {"1d": (16, 1, 1), "2d": (16, 8, 1), "3d": (8, 8, 4)}[g]
        image = Image(g, "f32", 1, extent, levels=4, seed=30)
        n = image.dims
        rows = []
        for i in range(8):
            c = random_coords(image, normalized, 0.25)
            unit = 1 / 16 if normalized else 1
            grad = [[f32(rng.uniform(-6, 6) * unit) for _ in range(n)] for _ in range(2)]
            rows.append((words_of(c, image) + [bits_of(x) for d in grad for x in d], dict(coords=c, grad=grad), "f32"))
        vector = lambda k: "{" + ",".join(f"%c{k + min(j, n - 1)}" for j in range(4 if n == 3 else n)) + "}"
        case(f"grad {g}", image, code(f"tex.grad.{g}.v4.f32.f32", n, f", {vector(n)}, {vector(2 * n)}"), rows, filter="linear",
             mip="linear", normalized=normalized)

# Offsets, comparisons, gathering, each with a sampler of its own as well.
for g in ("1d", "2d", "3d", "a2d"):
    image = Image(g, "f32", 1, (6, 5 if g != "1d" else 1, 4 if g == "3d" else 1), 2 if g == "a2d" else 1, seed=41)
    rows = []
    n, m = COUNT[g], image.dims
    for _ in range(6):
        c = random_coords(image, 0)
        o = [rng.randrange(-8, 8) for _ in range(m)]
        rows.append((words_of(c, image) + [v % 2**32 for v in o], dict(coords=c, offset=o + [0] * (3 - m)), "f32"))
    e = "{" + ",".join(f"%c{n + min(j, m - 1)}" for j in range(4 if m == 3 else m)) + "}"
    case(f"offset {g}", image, code(f"tex.{g}.v4.f32.f32", n, f", {e}"), rows, filter="linear", address=("mirror", "border", "clamp"))
for g in ("2d", "a2d", "cube"):
    image = Image(g, "f32", 1, (4, 4, 1), {"a2d": 2, "cube": 6}.get(g, 1), seed=43)
    rows = []
    n = COUNT[g]
    for _ in range(8):
        c = random_coords(image, 0)
        ref = floats(-2, 2)
        rows.append((words_of(c, image) + [bits_of(ref)], dict(coords=c, ref=F(ref)), "f32"))
    # A register without a type would be an offset.
    text = f"mov.b32 %f0, %c{n}; " + code(f"tex.{g}.v4.f32.f32", n, ", %f0")
    case(f"compare {g}", image, text, rows, filter="linear")
for g, channel in itertools.product(("2d", "a2d", "cube", "acube"), ("f32", "u8")):
    for k, component in enumerate("rgba"):
        seed += 1
        image = Image(g, channel, 4 if k else 2, (4, 4, 1), {"a2d": 2, "cube": 6, "acube": 12}.get(g, 1), seed=seed)
        rows = []
        for _ in range(4):
            c = random_coords(image, 0)
            rows.append((words_of(c, image), dict(coords=c, gather=k), "f32"))
        dtype = "f32" if channel == "f32" else "u32"
        case(f"gather {component} of {g}", image, code(f"tld4.{component}.{g}.v4.{dtype}.f32", COUNT[g]), rows,
             filter="linear", address=("mirror", "border", "clamp"), border=border)
image = Image("2d", "f32", 2, (4, 4, 1), seed=77)
rows = []
for _ in range(6):
    c, o, ref = random_coords(image, 1), [rng.randrange(-8, 8) for _ in range(2)], floats(-2, 2)
    rows.append((words_of(c, image) + [v % 2**32 for v in o] + [bits_of(ref)],
                 dict(coords=c, gather=1, offset=o + [0], ref=F(ref)), "f32"))
case("gather compared at offsets", image, code("tld4.g.2d.v4.f32.f32", 2, ", {%c2,%c3}, %c4"), rows, normalized=1,
     address=("wrap", "mirror", "clamp"))
