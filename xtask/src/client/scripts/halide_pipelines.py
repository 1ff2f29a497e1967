"""Pipelines of Halide on the CUDA target, against numpy."""

import halide as hl
import numpy as np
from parts import part, run

TARGET = hl.get_host_target().with_feature(hl.TargetFeature.CUDA).with_feature(hl.TargetFeature.CUDACapability80)
x, y, xo, yo, xi, yi = (hl.Var(name) for name in ("x", "y", "xo", "yo", "xi", "yi"))
IMAGE = np.random.default_rng(1).random((48, 64), dtype=np.float32)


def realize(function, *extent):
    function.compile_jit(TARGET)
    buffer = function.realize(list(extent), TARGET)
    buffer.copy_to_host()
    return np.array(buffer)


KEPT = []


def image(of=IMAGE):
    """A buffer of Halide's, which does not keep NumPy's memory."""
    KEPT.append(of.copy())
    return hl.Buffer(KEPT[-1])


@part
def pointwise():
    f = hl.Func("pointwise")
    f[x, y] = hl.sqrt(image()[x, y]) * 2.0 + hl.cast(hl.Float(32), x - y)
    f.gpu_tile(x, y, xo, yo, xi, yi, 16, 8)
    rows, columns = np.mgrid[:48, :64].astype(np.float32)
    np.testing.assert_allclose(realize(f, 64, 48), np.sqrt(IMAGE) * 2 + columns - rows, rtol=1e-6, atol=1e-5)


@part
def blur():
    """Its first stage is in shared memory."""
    padded = hl.BoundaryConditions.repeat_edge(image())
    rows, f = hl.Func("rows"), hl.Func("blur")
    rows[x, y] = (padded[x - 1, y] + padded[x, y] + padded[x + 1, y]) / 3.0
    f[x, y] = (rows[x, y - 1] + rows[x, y] + rows[x, y + 1]) / 3.0
    f.gpu_tile(x, y, xo, yo, xi, yi, 16, 16)
    rows.compute_at(f, xo).gpu_threads(x, y)
    edge = np.pad(IMAGE, 1, "edge").astype(np.float64)
    wanted = sum(edge[i : i + 48, j : j + 64] for i in range(3) for j in range(3)) / 9
    np.testing.assert_allclose(realize(f, 64, 48), wanted, rtol=1e-5)


@part
def product():
    a, b = image(IMAGE[:32, :48]), image(IMAGE[:48, :32])
    f, k = hl.Func("product"), hl.RDom([(0, 48)])
    f[x, y] = 0.0
    f[x, y] += a[k.x, y] * b[x, k.x]
    f.gpu_tile(x, y, xo, yo, xi, yi, 8, 8)
    f.update().gpu_tile(x, y, xo, yo, xi, yi, 8, 8)
    np.testing.assert_allclose(realize(f, 32, 32), IMAGE[:32, :48] @ IMAGE[:48, :32], rtol=1e-5)


@part
def histogram():
    """Threads count by atomic additions."""
    values = (IMAGE * 16).astype(np.uint8)
    f, r = hl.Func("histogram"), hl.RDom([(0, 64), (0, 48)])
    f[x] = 0
    f[hl.cast(hl.Int(32), image(values)[r.x, r.y])] += 1
    f.gpu_tile(x, xo, xi, 8)
    f.update().atomic().gpu_tile(r.x, r.y, hl.RVar("bx"), hl.RVar("by"), hl.RVar("tx"), hl.RVar("ty"), 8, 8)
    np.testing.assert_array_equal(realize(f, 16), np.bincount(values.ravel(), minlength=16))


@part
def sums_of_rows():
    f, r = hl.Func("sums"), hl.RDom([(0, 64)])
    f[y] = 0.0
    f[y] += image()[r.x, y]
    f.gpu_tile(y, yo, yi, 16)
    f.update().gpu_tile(y, yo, yi, 16)
    np.testing.assert_allclose(realize(f, 48), IMAGE.sum(1), rtol=1e-5)


@part
def integers():
    values = np.random.default_rng(2).integers(-1000, 1000, (48, 64), dtype=np.int16)
    f = hl.Func("integers")
    value = hl.cast(hl.Int(32), image(values)[x, y])
    f[x, y] = hl.select(value > 0, value // 7, hl.cast(hl.Int(32), hl.abs(value)) % 5)
    f.gpu_tile(x, y, xo, yo, xi, yi, 16, 8)
    wide = values.astype(np.int32)
    np.testing.assert_array_equal(realize(f, 64, 48), np.where(wide > 0, wide // 7, np.abs(wide) % 5))


run()
