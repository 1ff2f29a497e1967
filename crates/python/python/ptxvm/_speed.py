"""How long it takes to import the package and to launch a small kernel: ``python -m ptxvm._speed``."""

import json
import statistics
import subprocess
import sys
import time

KERNEL = """.version 7.0 .target sm_70 .address_size 64
.visible .entry scale(.param .u64 data, .param .f32 factor) {
    .reg .b32 %i;  .reg .b64 %p;  .reg .f32 %x, %f;
    mov.u32 %i, %tid.x;
    ld.param.u64 %p, [data];
    ld.param.f32 %f, [factor];
    mad.wide.u32 %p, %i, 4, %p;
    ld.global.f32 %x, [%p];
    mul.rn.f32 %x, %x, %f;
    st.global.f32 [%p], %x;
    ret;
}"""
_IMPORT = """
import time
start, busy = time.perf_counter(), time.process_time()
import ptxvm
print(time.perf_counter() - start, time.process_time() - busy)
"""


def measure(launches=20_000, imports=11):
    """Medians: of so many imports in milliseconds (and of what they take of a processor that others may use, too), and of so many launches of a kernel
    of 32 threads in microseconds."""
    from . import Module

    run = [sys.executable, "-c", _IMPORT]
    times = [map(float, subprocess.run(run, capture_output=True, check=True).stdout.split()) for _ in range(imports)]
    wall, busy = (statistics.median(some) * 1e3 for some in zip(*times))
    module = Module(KERNEL)
    data = bytearray(32 * 4)
    times = []
    for _ in range(launches):
        start = time.perf_counter()
        module["scale"][1, 32](data, 1.0)
        times.append(time.perf_counter() - start)
    return {"import_ms": wall, "import_cpu_ms": busy, "launch_us": statistics.median(times) * 1e6}


if __name__ == "__main__":
    print(json.dumps(measure()))
