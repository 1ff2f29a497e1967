import os
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

#: The root of the repository, whose examples are the kernels of these tests.
ROOT = Path(os.environ.get("PTXVM_ROOT", Path(__file__).resolve().parents[3]))

HEAD = ".version 8.5\n.target sm_90\n.address_size 64\n"

#: y[i] = a * x[i] + y[i]
SAXPY = (
    HEAD
    + """.visible .entry saxpy(.param .u32 n, .param .f32 a, .param .u64 x, .param .u64 y) {
    .reg .b32 %i, %t, %b;  .reg .b64 %p, %q, %o;  .reg .f32 %v, %w, %a;  .reg .pred %out;
    mov.u32 %b, %ctaid.x;
    mov.u32 %t, %ntid.x;
    mad.lo.u32 %i, %b, %t, 0;
    mov.u32 %t, %tid.x;
    add.u32 %i, %i, %t;
    ld.param.u32 %b, [n];
    setp.ge.u32 %out, %i, %b;
    @%out ret;
    ld.param.f32 %a, [a];
    ld.param.u64 %p, [x];
    ld.param.u64 %q, [y];
    mul.wide.u32 %o, %i, 4;
    add.u64 %p, %p, %o;
    add.u64 %q, %q, %o;
    ld.global.f32 %v, [%p];
    ld.global.f32 %w, [%q];
    fma.rn.f32 %w, %v, %a, %w;
    st.global.f32 [%q], %w;
    ret;
}
"""
)

#: Counts the values 0 to 15 of bytes.
HISTOGRAM = (
    HEAD
    + """.visible .entry histogram(.param .u64 data, .param .u64 counts) {
    .reg .b32 %i, %t, %v, %old;  .reg .b64 %p, %q, %o;
    mov.u32 %i, %ctaid.x;
    mov.u32 %t, %ntid.x;
    mul.lo.u32 %i, %i, %t;
    mov.u32 %t, %tid.x;
    add.u32 %i, %i, %t;
    cvt.u64.u32 %o, %i;
    ld.param.u64 %p, [data];
    add.u64 %p, %p, %o;
    ld.global.u8 %v, [%p];
    and.b32 %v, %v, 15;
    ld.param.u64 %q, [counts];
    mad.wide.u32 %q, %v, 4, %q;
    atom.global.add.u32 %old, [%q], 1;
    ret;
}
"""
)

#: Never ends.
ENDLESS = HEAD + ".visible .entry endless() {\nagain:\n    bra again;\n}\n"

#: Copies its structure to memory: two floats, an integer and a pointer.
STRUCTURE = (
    HEAD
    + """.visible .entry spread(.param .align 8 .b8 s[32], .param .u64 out) {
    .reg .b32 %v<4>;  .reg .b64 %p, %q;
    ld.param.u64 %q, [out];
    ld.param.b32 %v0, [s];
    ld.param.b32 %v1, [s+4];
    ld.param.b32 %v2, [s+8];
    ld.param.u64 %p, [s+16];
    ld.global.b32 %v3, [%p];
    st.global.b32 [%q], %v0;
    st.global.b32 [%q+4], %v1;
    st.global.b32 [%q+8], %v2;
    st.global.b32 [%q+12], %v3;
    ret;
}
"""
)


def printer(blocks="1"):
    """A kernel that prints the number of its block."""
    return (
        HEAD
        + """.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.global .align 1 .b8 text[10] = {98, 108, 111, 99, 107, 32, 37, 100, 10, 0};
.visible .entry hello() {
    .local .align 8 .b8 buffer[8];
    .reg .b32 %v, %r;  .reg .b64 %f, %a;
    mov.u32 %v, %ctaid.x;
    mov.u64 %a, buffer;
    st.local.u32 [%a], %v;
    cvta.local.u64 %a, %a;
    mov.u64 %f, text;
    cvta.global.u64 %f, %f;
    {
        .param .b64 p0; st.param.b64 [p0], %f;
        .param .b64 p1; st.param.b64 [p1], %a;
        .param .b32 back;
        call.uni (back), vprintf, (p0, p1);
    }
    ret;
}
"""
    )


@pytest.fixture
def root():
    return ROOT


def arguments(size=1000):
    """x and y of a launch of `saxpy`."""
    import numpy

    x = numpy.arange(size, dtype=numpy.float32)
    y = numpy.full(size, 0.5, numpy.float32)
    return x, y
