"""Textures, surfaces and samplers as arguments, against NumPy."""

import pickle
import sys
import threading

import ml_dtypes
import numpy
import pytest
from conftest import HEAD, SAXPY

import ptxvm
from ptxvm import jobs


def sampling(instruction, parameters=".param .u64 t", loads="ld.param.u64 %t, [t];", declarations="", head=HEAD):
    """A kernel that samples at (xs[i], ys[i]) and writes four numbers for each."""
    return f"""{head}{declarations}
.visible .entry sample({parameters}{"," if parameters else ""} .param .u64 xs, .param .u64 ys, .param .u64 out) {{
    .reg .b32 %i;  .reg .b64 %t, %s, %p, %q, %o;  .reg .f32 %x, %y;  .reg .b32 %v<4>;
    mov.u32 %i, %tid.x;
    {loads}
    ld.param.u64 %p, [xs];  mad.wide.u32 %p, %i, 4, %p;  ld.global.f32 %x, [%p];
    ld.param.u64 %q, [ys];  mad.wide.u32 %q, %i, 4, %q;  ld.global.f32 %y, [%q];
    {instruction}
    ld.param.u64 %o, [out];  mad.wide.u32 %o, %i, 16, %o;
    st.global.v4.b32 [%o], {{%v0, %v1, %v2, %v3}};
    ret;
}}"""


PLANE = sampling("tex.2d.v4.f32.f32 {%v0, %v1, %v2, %v3}, [%t, {%x, %y}];")
XS, YS = (array.astype("f4").ravel() for array in numpy.meshgrid(numpy.linspace(-3, 12, 31), numpy.linspace(-2, 8, 21)))


def sample(source, *objects, xs=XS, ys=YS, dtype="f4", **options):
    out = numpy.zeros((xs.size, 4), dtype)
    ptxvm.launch(source, *objects, xs, ys, out, block=xs.size, **options)
    return out


def picture(shape=(5, 8), seed=0):
    return (numpy.random.default_rng(seed).integers(-64, 64, shape) / 8).astype("f4")


def clamped(index, length):
    return numpy.clip(index, 0, length - 1)


def mirrored(index, length):
    place = index % (2 * length)
    return numpy.minimum(place, 2 * length - 1 - place)


def nearest(image, xs, ys, outside=clamped):
    x, y = (numpy.floor(c).astype(int) for c in (xs, ys))
    return image[outside(y, image.shape[0]), outside(x, image.shape[1])]


def test_the_nearest_texel():
    image = picture()
    out = sample(PLANE, ptxvm.Texture(image))
    assert numpy.array_equal(out[:, 0], nearest(image, XS, YS)) and (out[:, 1:] == (0, 0, 1)).all()


@pytest.mark.parametrize("address, outside", [
    ("clamp", clamped), ("wrap", lambda i, n: i % n), ("mirror", mirrored),
])  # fmt: skip
def test_normalised_coordinates(address, outside):
    image = picture((4, 8))
    out = sample(PLANE, ptxvm.Texture(image, address=address, normalized=True), xs=XS / 8, ys=YS / 4)
    assert numpy.array_equal(out[:, 0], nearest(image, XS, YS, outside))


def test_each_dimension_has_a_mode_of_its_own():
    image = picture((4, 8))
    out = sample(PLANE, ptxvm.Texture(image, address=("wrap", "clamp"), normalized=True), xs=XS / 8, ys=YS / 4)
    assert numpy.array_equal(out[:, 0], image[clamped(numpy.floor(YS).astype(int), 4), numpy.floor(XS).astype(int) % 8])


def test_borders():
    image = picture()
    inside = (XS >= 0) & (XS < 8) & (YS >= 0) & (YS < 5)
    for border in [0.375, 3e-05, (-1.5,)]:
        out = sample(PLANE, ptxvm.Texture(image, address="border", border=border))
        expected = numpy.float32(border[0] if isinstance(border, tuple) else border)
        assert numpy.array_equal(out[:, 0], numpy.where(inside, nearest(image, XS, YS), expected))


def test_linear_filtering():
    image = picture().astype("f8")
    x, y = XS.astype("f8") - 0.5, YS.astype("f8") - 0.5
    left, top = numpy.floor(x).astype(int), numpy.floor(y).astype(int)
    # Weights have 8 fractional bits (CUDA C++ Programming Guide, "Linear Filtering").
    a, b = (numpy.floor((c - i) * 256 + 0.5) / 256 for c, i in ((x, left), (y, top)))
    at = lambda i, j: image[clamped(top + j, 5), clamped(left + i, 8)]  # noqa: E731
    expected = (1 - a) * (1 - b) * at(0, 0) + a * (1 - b) * at(1, 0) + (1 - a) * b * at(0, 1) + a * b * at(1, 1)
    for engine in ["interpreter", "reference"]:
        out = sample(PLANE, ptxvm.Texture(image.astype("f4"), filter="linear"), engine=engine)
        assert numpy.array_equal(out[:, 0], expected.astype("f4"))


def test_types_and_channels_of_texels():
    random = numpy.random.default_rng(1)
    colours = random.integers(0, 256, (5, 8, 4), "u1")
    out = sample(PLANE, ptxvm.Texture(colours, channels=4, normalized_float=True))
    assert numpy.array_equal(out, (nearest(colours, XS, YS) / 255).astype("f4"))
    as_numbers = sample(PLANE, ptxvm.Texture(colours, channels=4, format="unorm8"))
    assert numpy.array_equal(as_numbers, out)
    halves = picture().astype("f2")
    assert numpy.array_equal(sample(PLANE, ptxvm.Texture(halves))[:, 0], nearest(halves, XS, YS).astype("f4"))
    words = random.integers(-(2**31), 2**31, (5, 8, 2), "i4")
    whole = sampling("tex.2d.v4.s32.f32 {%v0, %v1, %v2, %v3}, [%t, {%x, %y}];")
    assert numpy.array_equal(sample(whole, ptxvm.Texture(words, channels=2), dtype="i4")[:, :2], nearest(words, XS, YS))


def test_other_geometries():
    line = sampling("tex.1d.v4.f32.f32 {%v0, %v1, %v2, %v3}, [%t, {%x}];")
    data = picture((9,))
    assert numpy.array_equal(sample(line, ptxvm.Texture(data))[:, 0], data[clamped(numpy.floor(XS).astype(int), 9)])
    fetch = sampling("cvt.rzi.s32.f32 %i, %x; tex.1d.v4.f32.s32 {%v0, %v1, %v2, %v3}, [%t, {%i}]; mov.u32 %i, %tid.x;")
    found = sample(fetch, ptxvm.Texture(data, geometry="linear"))[:, 0]
    whole = numpy.trunc(XS).astype(int)
    assert numpy.array_equal(found, numpy.where((whole >= 0) & (whole < 9), data[clamped(whole, 9)], 0))
    layers = picture((3, 5, 8))
    layered = sampling("cvt.rzi.u32.f32 %i, %y; tex.a2d.v4.f32.f32 {%v0, %v1, %v2, %v3}, [%t, {%i, %x, %y, %y}]; mov.u32 %i, %tid.x;")
    out = sample(layered, ptxvm.Texture(layers, geometry="a2d"), ys=numpy.abs(YS))[:, 0]
    y = numpy.abs(YS).astype(int)
    assert numpy.array_equal(out, layers[clamped(y, 3), clamped(y, 5), clamped(numpy.floor(XS).astype(int), 8)])


#: Turns over all bits of a picture of words but the highest byte.
INVERT = (
    HEAD
    + """.visible .entry invert(.param .u64 s) {
    .reg .b32 %x, %y, %v;  .reg .b64 %s;
    ld.param.u64 %s, [s];
    mov.u32 %x, %tid.x;
    mov.u32 %y, %ctaid.x;
    shl.b32 %x, %x, 2;
    suld.b.2d.b32.trap {%v}, [%s, {%x, %y}];
    xor.b32 %v, %v, 0x00ffffff;
    sust.b.2d.b32.trap [%s, {%x, %y}], {%v};
    ret;
}
"""
)


def test_surfaces_are_written_in_place():
    colours = numpy.random.default_rng(2).integers(0, 256, (6, 10, 4), "u1")
    expected = colours ^ numpy.uint8([255, 255, 255, 0])
    ptxvm.launch(INVERT, ptxvm.Surface(colours, channels=4), grid=6, block=10)
    assert numpy.array_equal(colours, expected)
    # Rows of a part of an array that begins where surfaces cannot.
    memory = numpy.zeros(1000, "u1")
    for start in range(4):
        part = memory[16 * start + start + 1 :][:240].reshape(6, 10, 4)
        part[...] = colours
        ptxvm.launch(INVERT, ptxvm.Surface(part, channels=4), grid=6, block=10)
        assert numpy.array_equal(part, colours ^ numpy.uint8([255, 255, 255, 0]))


def test_what_is_outside_of_a_surface():
    colours = numpy.zeros((6, 10, 4), "u1")
    with pytest.raises(ptxvm.Error, match="suld.b.2d") as caught:
        ptxvm.launch(INVERT, ptxvm.Surface(colours, channels=4), grid=7, block=10)
    assert caught.value.code == "out-of-bounds"
    colours[...] = 0
    colours.flags.writeable = False
    with pytest.raises(ptxvm.Error, match="argument 0 \\(`s`\\), which is a read-only array"):
        ptxvm.launch(INVERT, ptxvm.Surface(colours, channels=4), grid=6, block=10)
    assert (colours == 0).all()
    image = picture()
    image.flags.writeable = False
    assert numpy.array_equal(sample(PLANE, ptxvm.Texture(image))[:, 0], nearest(image, XS, YS))


def test_a_texture_and_an_array_share_memory():
    image = picture((21, 32))
    xs, ys, out = numpy.arange(16, dtype="f4"), numpy.full(16, 20, "f4"), image.reshape(-1)[:64]
    ptxvm.launch(PLANE, ptxvm.Texture(image), xs, ys, out, block=16)
    assert numpy.array_equal(out[::4], image[20, :16])


def test_handles_in_structures():
    parameters, loads = ".param .align 8 .b8 p[16]", "ld.param.u64 %t, [p+8];"
    source = sampling("tex.2d.v4.f32.f32 {%v0, %v1, %v2, %v3}, [%t, {%x, %y}];", parameters, loads)
    image = picture()
    out = sample(source, (7, ptxvm.Texture(image)))
    assert numpy.array_equal(out[:, 0], nearest(image, XS, YS))


def test_samplers_of_their_own():
    head = HEAD.replace("sm_90", "sm_90, texmode_independent")
    parameters, loads = ".param .u64 t, .param .u64 s", "ld.param.u64 %t, [t];  ld.param.u64 %s, [s];"
    source = sampling("tex.2d.v4.f32.f32 {%v0, %v1, %v2, %v3}, [%t, %s, {%x, %y}];", parameters, loads, head=head)
    image = picture()
    for sampler, outside in [(ptxvm.Sampler(), clamped), (ptxvm.Sampler(address="wrap", normalized=True), lambda i, n: i % n)]:
        scale = (8, 5) if "normalized" in repr(sampler) else (1, 1)
        xs, ys = XS + numpy.float32(0.25), YS + numpy.float32(0.25)
        out = sample(source, ptxvm.Texture(image), sampler, xs=xs / scale[0], ys=ys / scale[1])
        assert numpy.array_equal(out[:, 0], nearest(image, xs, ys, outside))


BOUND = sampling("tex.2d.v4.f32.f32 {%v0, %v1, %v2, %v3}, [image, {%x, %y}];", "", "", ".global .texref image;\n")


def test_variables_are_bound_for_a_launch():
    module = ptxvm.Module(BOUND)
    images = [picture(seed=seed) for seed in range(4)]

    def work(image, wrong):
        for _ in range(10):
            out = sample(module, bind={"image": ptxvm.Texture(image)})
            if not numpy.array_equal(out[:, 0], nearest(image, XS, YS)):
                wrong.append(image)

    wrong = []
    threads = [threading.Thread(target=work, args=(image, wrong)) for image in images]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    # No other launch sees it.
    with pytest.raises(ptxvm.Error) as caught:
        sample(module)
    assert caught.value.code == "invalid-handle"
    with pytest.raises(ptxvm.Error, match="no such texture"):
        sample(module, bind={"other": ptxvm.Texture(images[0])})
    with pytest.raises(TypeError):
        sample(module, bind={"image": images[0]})
    with pytest.raises(TypeError):
        sample(module, bind=images[0])


@pytest.mark.parametrize("make, kind, message", [
    (lambda: ptxvm.Texture(numpy.zeros((4, 4))), ValueError, "no texels of f64"),
    (lambda: ptxvm.Texture(numpy.zeros((4, 4), ml_dtypes.bfloat16)), ValueError, "no texels of b"),
    (lambda: ptxvm.Texture(numpy.zeros((4, 4), "c8")), ValueError, "no texels of complex64"),
    (lambda: ptxvm.Texture(numpy.zeros((4, 4), ">f4")), TypeError, "highest byte"),
    (lambda: ptxvm.Texture(numpy.zeros((4, 8), "f4")[:, ::2]), TypeError, "one behind the other"),
    (lambda: ptxvm.Texture(numpy.zeros((4, 4), "f4"), filter="cubic"), ValueError, "point, linear"),
    (lambda: ptxvm.Texture(numpy.zeros((4, 4), "f4"), address=("wrap", "up")), ValueError, "addressing mode"),
    (lambda: ptxvm.Texture(numpy.zeros((4, 4), "f4"), geometry="4d"), ValueError, "no geometry"),
    (lambda: ptxvm.Texture(numpy.zeros((4, 4), "f4"), extent=(8, 8)), ValueError, "the image has 256 bytes, the array 64"),
    (lambda: ptxvm.Texture(numpy.zeros((4, 4), "f4"), channels=3), ValueError, "1, 2 or 4 channels"),
    (lambda: ptxvm.Texture(numpy.zeros((5, 4, 4), "f4"), geometry="cube"), ValueError, "layers"),
    (lambda: ptxvm.Texture(numpy.zeros((0, 4), "f4")), ValueError, "extent is 0"),
    (lambda: ptxvm.Surface(numpy.zeros((4, 4), "f4"), filter="linear"), TypeError, "filter"),
    (lambda: ptxvm.Sampler(border="red"), ValueError, "border"),
])  # fmt: skip
def test_what_is_no_texture_is_refused(make, kind, message):
    with pytest.raises(kind, match=message):
        make()


def test_parameters_that_take_no_handle():
    with pytest.raises(ptxvm.ArgumentError, match="argument 1 \\(`a`\\) is a Texture, but the parameter is .f32"):
        ptxvm.launch(SAXPY, 1, ptxvm.Texture(picture()), None, None)


def test_objects_give_their_arrays_back_and_can_be_pickled():
    image = picture()
    before = sys.getrefcount(image)
    texture = ptxvm.Texture(image, filter="linear", address=("wrap", "clamp"), normalized=True)
    assert texture.array is image
    assert repr(texture) == "<ptxvm.Texture float32[5x8], filter='linear', address=('wrap', 'clamp'), normalized=True>"
    again = pickle.loads(pickle.dumps(texture))
    assert repr(again) == repr(texture) and isinstance(again, ptxvm.Texture)
    assert numpy.array_equal(sample(PLANE, again), sample(PLANE, texture))
    del texture
    assert sys.getrefcount(image) == before


class Tensor:
    """What has DLPack and nothing else."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_texels_of_others():
    image = picture()
    assert numpy.array_equal(sample(PLANE, ptxvm.Texture(Tensor(image)))[:, 0], nearest(image, XS, YS))


def test_jobs_with_textures_and_surfaces():
    from test_jobs import Here

    colours = numpy.random.default_rng(3).integers(0, 256, (6, 10, 4), "u1")
    expected = colours ^ numpy.uint8([255, 255, 255, 0])
    jobs.run(ptxvm.Module(INVERT)["invert"][6, 10], ptxvm.Surface(colours, channels=4), executor=Here(), parts=4)
    assert numpy.array_equal(colours, expected)


#: Copies a texture, a block for each row.
COPY = (
    HEAD
    + """.visible .entry copy(.param .u64 t, .param .u64 out) {
    .reg .b32 %x, %y, %i, %v<4>;  .reg .b64 %t, %o;
    ld.param.u64 %t, [t];
    mov.u32 %x, %tid.x;
    mov.u32 %y, %ctaid.x;
    mov.u32 %i, %ntid.x;
    mad.lo.u32 %i, %i, %y, %x;
    tex.2d.v4.f32.s32 {%v0, %v1, %v2, %v3}, [%t, {%x, %y}];
    ld.param.u64 %o, [out];
    mad.wide.u32 %o, %i, 4, %o;
    st.global.b32 [%o], %v0;
    ret;
}
"""
)
COMPARED = """
def test_copied(ptx):
    ptx.compare(ptx.kernel("copy.ptx"), lambda image: image, ptx.texture(), ptx.output, shapes=[(4, 8)], grid=4, block=8)

def test_inverted(ptx):
    ptx.compare(ptx.kernel("invert.ptx"), lambda image: image ^ {mask}, ptx.surface(), dtypes=["uint32"], shapes=[(4, 8)], grid=4, block=8)
"""


def test_the_plugin_compares_textures_and_surfaces(pytester):
    (pytester.path / "copy.ptx").write_text(COPY)
    (pytester.path / "invert.ptx").write_text(INVERT)
    pytester.makepyfile(COMPARED.format(mask="0xffffff"))
    pytester.runpytest_subprocess("-p", "no:cacheprovider", "--ptxvm").assert_outcomes(passed=2)
    pytester.makepyfile(COMPARED.format(mask="0xfffffe"))
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.re_match_lines([r".*32 of 32 elements of argument 0 \(`s`\) differ", r".*written by .*invert.ptx:\d+: sust.b.2d.b32.trap"])
