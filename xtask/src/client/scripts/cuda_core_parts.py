"""What cuda.core wraps: devices, streams, memory, programs, linking, launches and graphs."""

import numpy as np
from cuda.core import Device, LaunchConfig, Linker, LinkerOptions, ObjectCode, Program, ProgramOptions, launch
from parts import part, run

CODE = r"""
extern "C" __device__ float twice(float);
template <typename T> __global__ void scale(T *x, T factor, size_t n) {
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i < n) x[i] *= factor;
}
extern "C" __global__ void add_one(int *x) { atomicAdd(x, 1); }
"""
CALLER = 'extern "C" __device__ float twice(float); extern "C" __global__ void apply(float *x) { x[threadIdx.x] = twice(x[threadIdx.x]); }'
CALLED = 'extern "C" __device__ float twice(float x) { return 2 * x; }'

device = Device()
device.set_current()
stream = device.create_stream()
ARCH = f"sm_{device.arch}"


def compiled(code, names=(), **options):
    program = Program(code, "c++", ProgramOptions(arch=ARCH, **options))
    return program.compile("ptx", name_expressions=names) if names else program.compile("ptx")


def host_buffer(count, dtype):
    """Memory that device and host share, and NumPy's view of it."""
    from cuda.core import LegacyPinnedMemoryResource

    buffer = LegacyPinnedMemoryResource().allocate(count * np.dtype(dtype).itemsize)
    return buffer, np.from_dlpack(buffer).view(dtype)


@part
def properties():
    assert device.compute_capability.major == int(device.arch[:-1])
    assert device.properties.warp_size == 32 and device.properties.max_threads_per_block == 1024
    assert device.name and device.uuid


@part
def copies():
    source, numbers = host_buffer(256, np.uint8)
    target, copy = host_buffer(256, np.uint8)
    numbers[:], copy[:] = np.arange(256), 0
    on_device = device.memory_resource.allocate(256, stream=stream)
    on_device.copy_from(source, stream=stream)
    target.copy_from(on_device, stream=stream)
    stream.sync()
    np.testing.assert_array_equal(copy, np.arange(256))
    on_device.close(stream)


@part
def templates():
    kernel = compiled(CODE, ("scale<float>", "scale<double>"))
    for name, dtype in (("scale<float>", np.float32), ("scale<double>", np.float64)):
        buffer, numbers = host_buffer(100, dtype)
        numbers[:] = np.arange(100)
        config = LaunchConfig(grid=4, block=32)
        launch(stream, config, kernel.get_kernel(name), buffer, dtype(3), np.uint64(100))
        stream.sync()
        np.testing.assert_array_equal(numbers, np.arange(100) * 3)


@part
def events():
    buffer, numbers = host_buffer(1, np.int32)
    numbers[0] = 0
    kernel = compiled(CODE, ("add_one",)).get_kernel("add_one")
    launch(stream, LaunchConfig(grid=2, block=64), kernel, buffer)
    event = stream.record()
    event.sync()
    assert event.is_done and numbers[0] == 128


@part
def attributes():
    kernel = compiled(CODE, ("add_one",)).get_kernel("add_one")
    assert kernel.attributes.max_threads_per_block >= 32
    assert kernel.occupancy.max_active_blocks_per_multiprocessor(64, 0) > 0


@part
def linked():
    parts = [compiled(code, relocatable_device_code=True) for code in (CALLER, CALLED)]
    text = Linker(*parts, options=LinkerOptions(arch=ARCH)).link("cubin")
    buffer, numbers = host_buffer(32, np.float32)
    numbers[:] = np.arange(32)
    launch(stream, LaunchConfig(grid=1, block=32), text.get_kernel("apply"), buffer)
    stream.sync()
    np.testing.assert_array_equal(numbers, np.arange(32) * 2)


@part
def object_code():
    ptx = bytes(compiled(CODE, ("add_one",)).code)
    buffer, numbers = host_buffer(1, np.int32)
    numbers[0] = 5
    launch(stream, LaunchConfig(grid=1, block=1), ObjectCode.from_ptx(ptx).get_kernel("add_one"), buffer)
    stream.sync()
    assert numbers[0] == 6


@part
def graphs():
    buffer, numbers = host_buffer(1, np.int32)
    numbers[0] = 0
    kernel = compiled(CODE, ("add_one",)).get_kernel("add_one")
    builder = device.create_graph_builder()
    builder.begin_building()
    for _ in range(3):
        launch(builder, LaunchConfig(grid=1, block=32), kernel, buffer)
    graph = builder.end_building().complete()
    for _ in range(2):
        graph.launch(stream)
    stream.sync()
    assert numbers[0] == 192


run()
