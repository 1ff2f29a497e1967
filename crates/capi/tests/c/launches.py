"""ptx_run as tinygrad calls it: the library and its name are the only argument."""

import ctypes
import sys
import threading

library = ctypes.CDLL(sys.argv[1])
library.ptx_run.argtypes = [
    ctypes.c_char_p, ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), *[ctypes.c_int] * 7,
]  # fmt: skip
library.ptx_run.restype = None


def ptx_run(text, values, block, grid, shared=0):
    args = (ctypes.c_void_p * len(values))(*values)
    library.ptx_run(text.encode(), len(values), args, *block, *grid, shared)


# A form that ptxas rejects, shared memory whose size the launch gives, and half types.
text = """
.version 7.5
.target sm_53
.address_size 64
.extern .shared .align 8 .b8 buffer[];
.visible .entry E_2_4(.param .u64 data0, .param .u64 data1)
{
    .reg .u64 %p, %q, %o;
    .reg .u32 %t, %s, %b;
    .reg .f64 %x;
    .reg .f16 %h;
    ld.param.u64 %p, [data0+0];
    ld.param.u64 %q, [data1+0];
    mov.u32 %b, %ctaid.x;
    mov.u32 %t, %tid.x;
    mad.lo.u32 %t, %b, 4, %t;
    mul.wide.u32 %o, %t, 2;
    add.u64 %q, %q, %o;
    ld.global.b16 %h, [%q+0];
    add.f16 %h, %h, %h;
    cvt.f64.f16 %x, %h;
    ex2.approx.f64 %x, %x;
    mov.u32 %s, buffer;
    and.b32 %b, %t, 3;
    mad.lo.u32 %s, %b, 8, %s;
    st.shared.f64 [%s], %x;
    bar.sync 0;
    ld.shared.f64 %x, [%s];
    mul.wide.u32 %o, %t, 8;
    add.u64 %p, %p, %o;
    st.global.f64 [%p+0], %x;
    ret;
}"""
halves = (ctypes.c_uint16 * 8)(0x0000, 0x3C00, 0x4000, 0x4200, 0xBC00, 0x3800, 0xC000, 0x4400)
results = (ctypes.c_double * 8)()
ptx_run(text, [ctypes.addressof(results), ctypes.addressof(halves)], (4, 1, 1), (2, 1, 1), 32)
assert list(results) == [1, 4, 16, 64, 0.25, 2, 0.0625, 256], list(results)

# Without the shared memory it faults; the next launch runs.
results[:] = [0] * 8
ptx_run(text, [ctypes.addressof(results), ctypes.addressof(halves)], (4, 1, 1), (2, 1, 1), 0)
assert list(results) == [0] * 8
ptx_run(text, [ctypes.addressof(results), ctypes.addressof(halves)], (4, 1, 1), (2, 1, 1), 32)
assert results[7] == 256

# From several threads at the same time.
everything = [(ctypes.c_double * 8)() for _ in range(16)]
threads = [
    threading.Thread(
        target=ptx_run, args=(text, [ctypes.addressof(out), ctypes.addressof(halves)], (4, 1, 1), (2, 1, 1), 32)
    )
    for out in everything
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert all(list(out) == [1, 4, 16, 64, 0.25, 2, 0.0625, 256] for out in everything)
print("good")
