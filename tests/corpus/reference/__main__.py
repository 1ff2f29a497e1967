"""Make the inputs and expected outputs of the corpus kernels again: `python3 tests/corpus/reference`. Needs numpy.

Each expectation is written from what the kernel is meant to compute, in the order of its operations where rounding
makes that matter. Nothing here reads PTX or knows ptxvm.
"""

import sys

sys.dont_write_bytecode = True

import common  # noqa: E402
import from_libdevice  # noqa: E402
import from_llvm  # noqa: E402
import from_numba  # noqa: E402
import from_nvidia  # noqa: E402
import from_ours  # noqa: E402
import from_pycuda  # noqa: E402
import from_tinygrad  # noqa: E402
import from_tinygrad_more  # noqa: E402
import from_triton  # noqa: E402

common.start()
PRODUCERS = (
    from_llvm,
    from_numba,
    from_nvidia,
    from_pycuda,
    from_tinygrad,
    from_tinygrad_more,
    from_triton,
    from_libdevice,
    from_ours,
)
for producer in PRODUCERS:
    producer.cases()
common.finish()
