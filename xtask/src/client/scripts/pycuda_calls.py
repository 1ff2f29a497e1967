"""What PyCUDA offers, against numpy: a line for each. The kernels are PTX, as no nvcc is asked for."""
import sys

import numpy as np
import pycuda.autoinit
import pycuda.driver as drv

CHOSEN = sys.argv[1:]
random = np.random.default_rng(0)
PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.const .align 4 .f32 factor[1];
.global .align 4 .u32 counter[1];
.visible .entry scale(.param .u64 to, .param .u64 from, .param .u32 n)
{
    .reg .b64 %to, %from, %at; .reg .u32 %i, %b, %n, %t; .reg .f32 %x, %f; .reg .pred %p;
    ld.param.u64 %to, [to]; ld.param.u64 %from, [from]; ld.param.u32 %n, [n];
    mov.u32 %i, %tid.x; mov.u32 %b, %ctaid.x; mov.u32 %t, %ntid.x; mad.lo.u32 %i, %b, %t, %i;
    setp.ge.u32 %p, %i, %n; @%p ret;
    mul.wide.u32 %at, %i, 4; add.u64 %to, %to, %at; add.u64 %from, %from, %at;
    ld.global.f32 %x, [%from]; ld.const.f32 %f, [factor]; mul.f32 %x, %x, %f; st.global.f32 [%to], %x;
    red.global.add.u32 [counter], 1;
    ret;
}
.visible .entry reverse(.param .u64 data)
{
    .reg .b64 %d, %at; .reg .u32 %i, %j, %a, %x; .shared .align 4 .u32 s[256];
    ld.param.u64 %d, [data]; mov.u32 %i, %tid.x; mul.wide.u32 %at, %i, 4; add.u64 %at, %d, %at;
    ld.global.u32 %x, [%at]; mov.u32 %a, s; mad.lo.u32 %a, %i, 4, %a; st.shared.u32 [%a], %x; bar.sync 0;
    mov.u32 %j, 255; sub.u32 %j, %j, %i; mov.u32 %a, s; mad.lo.u32 %a, %j, 4, %a; ld.shared.u32 %x, [%a]; st.global.u32 [%at], %x;
    ret;
}
.visible .entry far(.param .u64 data) { .reg .b64 %d; ld.param.u64 %d, [data]; st.global.u32 [%d+1048576], 1; ret; }
"""
module = drv.module_from_buffer(PTX)
scale, reverse = module.get_function("scale"), module.get_function("reverse")
factor, _ = module.get_global("factor")


def report(work):
    name = work.__name__
    if CHOSEN and name not in CHOSEN:
        return
    try:
        work()
        print("passed", name, flush=True)
    except Exception as error:
        print(f"failed {name}: {type(error).__name__}: {error}", flush=True)


def floats(count):
    return random.uniform(-1, 1, count).astype(np.float32)


@report
def arguments():
    x, y = floats(1000), np.zeros(1000, np.float32)
    drv.memcpy_htod(factor, np.float32(3))
    scale(drv.Out(y), drv.In(x), np.uint32(1000), block=(128, 1, 1), grid=(8, 1))
    np.testing.assert_array_equal(y, x * np.float32(3))


@report
def constants():
    x, y = floats(100), np.zeros(100, np.float32)
    for value in (0.5, -7):
        drv.memcpy_htod(factor, np.float32(value))
        scale(drv.Out(y), drv.In(x), np.uint32(100), block=(128, 1, 1))
        np.testing.assert_array_equal(y, x * np.float32(value))


@report
def variables():
    counter, size = module.get_global("counter")
    assert size == 4
    drv.memset_d32(counter, 0, 1)
    x = floats(77)
    scale(drv.InOut(x), drv.In(x), np.uint32(77), block=(32, 1, 1), grid=(3, 1))
    count = np.zeros(1, np.uint32)
    drv.memcpy_dtoh(count, counter)
    assert count == 77


@report
def shared_memory():
    x = np.arange(256, dtype=np.uint32)
    reverse(drv.InOut(x), block=(256, 1, 1))
    np.testing.assert_array_equal(x, np.arange(256)[::-1])


@report
def prepared_calls():
    x = np.arange(256, dtype=np.uint32)
    data = drv.to_device(x)
    reverse.prepare("P")
    reverse.prepared_call((1, 1), (256, 1, 1), data)
    np.testing.assert_array_equal(drv.from_device_like(data, x), x[::-1])
    assert reverse.prepared_timed_call((1, 1), (256, 1, 1), data)() >= 0


@report
def streams_and_events():
    stream, start, end = drv.Stream(), drv.Event(), drv.Event()
    x = drv.pagelocked_empty(4096, np.float32)
    y, x[:] = drv.pagelocked_zeros_like(x) if hasattr(drv, "pagelocked_zeros_like") else drv.pagelocked_zeros(4096, np.float32), floats(4096)
    drv.memcpy_htod(factor, np.float32(2))
    data = drv.mem_alloc(x.nbytes)
    start.record(stream)
    drv.memcpy_htod_async(data, x, stream)
    scale(data, data, np.uint32(4096), block=(256, 1, 1), grid=(16, 1), stream=stream)
    drv.memcpy_dtoh_async(y, data, stream)
    end.record(stream)
    end.synchronize()
    assert start.query() and end.time_since(start) >= 0 and stream.is_done()
    np.testing.assert_array_equal(y, x * np.float32(2))


@report
def managed_memory():
    x = drv.managed_zeros(256, np.uint32, mem_flags=drv.mem_attach_flags.GLOBAL)
    x[:] = np.arange(256)
    reverse(np.uint64(x.base.get_device_pointer()), block=(256, 1, 1))
    pycuda.autoinit.context.synchronize()
    np.testing.assert_array_equal(x, np.arange(256)[::-1])


@report
def registered_memory():
    from pycuda.driver import host_register_flags, register_host_memory

    array = np.zeros(8192, np.uint32)
    start = -array.ctypes.data % 4096 // 4
    page = array[start : start + 1024]
    page[:256] = np.arange(256)
    registered = register_host_memory(page, host_register_flags.DEVICEMAP)
    reverse(np.uint64(registered.base.get_device_pointer()), block=(256, 1, 1))
    pycuda.autoinit.context.synchronize()
    np.testing.assert_array_equal(page[:256], np.arange(256)[::-1])
    registered.base.unregister()


@report
def copies_of_rectangles():
    x, y = random.integers(0, 255, (40, 60)).astype(np.uint8), np.zeros((10, 20), np.uint8)
    data, pitch = drv.mem_alloc_pitch(60, 40, 4)
    copy = drv.Memcpy2D()
    copy.set_src_host(x)
    copy.set_dst_device(data)
    copy.src_pitch, copy.dst_pitch, copy.width_in_bytes, copy.height = 60, pitch, 60, 40
    copy(aligned=True)
    back = drv.Memcpy2D()
    back.set_src_device(data)
    back.set_dst_host(y)
    back.src_x_in_bytes, back.src_y, back.src_pitch, back.dst_pitch, back.width_in_bytes, back.height = 5, 7, pitch, 20, 20, 10
    back(aligned=False)
    np.testing.assert_array_equal(y, x[7:17, 5:25])


@report
def fills():
    data, y = drv.mem_alloc(400), np.zeros(100, np.uint32)
    drv.memset_d32(data, 0xDEADBEEF, 100)
    drv.memset_d16(int(data) + 40, 7, 2)
    drv.memset_d8(int(data) + 80, 1, 4)
    drv.memcpy_dtoh(y, data)
    wanted = np.full(100, 0xDEADBEEF, np.uint32)
    wanted[10], wanted[20] = 0x00070007, 0x01010101
    np.testing.assert_array_equal(y, wanted)


@report
def memory_pools():
    from pycuda.tools import DeviceMemoryPool

    pool = DeviceMemoryPool()
    first = pool.allocate(1000)
    address = int(first)
    first.free()
    assert int(pool.allocate(1000)) == address


@report
def devices():
    device = drv.Device(0)
    assert drv.Device.count() >= 1 and device.compute_capability() >= (5, 0)
    attributes = device.get_attributes()
    assert attributes[drv.device_attribute.WARP_SIZE] == 32 and device.total_memory() > 1 << 20
    free, total = drv.mem_get_info()
    assert 0 < free <= total


@report
def functions():
    assert reverse.shared_size_bytes == 1024 and reverse.max_threads_per_block == 1024
    from pycuda.tools import OccupancyRecord

    assert OccupancyRecord(pycuda.tools.DeviceData(), 256, 1024, 32).tb_per_mp > 0


@report
def bad_ptx_is_told():
    try:
        drv.module_from_buffer(b".version 7.0\n.target sm_70\n.entry f() { foo; }\n")
    except drv.Error as error:
        assert "foo" in str(error) or "PTX" in str(error), error
    else:
        raise AssertionError("it was loaded")


@report
def contexts():
    context = drv.Device(0).make_context()
    data = drv.mem_alloc(16)
    drv.memset_d32(data, 1, 4)
    data.free()
    context.pop()
    context.detach()


# At last, since nothing works behind it.
@report
def faults_are_told():
    # A context of its own breaks.
    context = drv.Device(0).make_context()
    try:
        data = drv.mem_alloc(16)
        drv.module_from_buffer(PTX).get_function("far")(data, block=(1, 1, 1))
        context.synchronize()
    except drv.LogicError as error:
        assert "illegal" in str(error), error
    else:
        raise AssertionError("nothing was told")
    finally:
        context.pop()


print("done")
