"""JAX on CUDA devices, without a GPU.

JAX looks for files of NVIDIA's kernel driver before it asks the CUDA driver for devices, and XLA compiles kernels to
machine code. ``ptxvm exec -- python ...`` sets ``PTXVM_JAX=1``; then JAX calls :func:`initialize` through the entry point
``jax_plugins``, and programs need no change. Here the CUDA driver alone decides which devices there are, and kernels stay
PTX. It needs JAX 0.10 or newer.
"""

import os
import sys

__all__ = ["initialize"]

# Of XLA: kernels are to be assembled by the `ptxas` in `PATH`, which is ptxvm's, and not by NVIDIA's libraries. How long
# kernels take here says nothing about a GPU, so that nothing is chosen by it. The sort of CUB is machine code in XLA's
# plugin; without it XLA sorts with a kernel that it compiles.
_FLAGS = {
    "xla_gpu_enable_libnvptxcompiler": "false",
    "xla_gpu_enable_libnvjitlink": "false",
    "xla_gpu_autotune_level": "0",
    "xla_gpu_enable_cub_radix_sort": "false",
}


def initialize() -> None:
    """What JAX calls before it makes its first device.

    A JAX without CUDA stays as it is. One that is too old does, too, and stderr says so.
    """
    if os.environ.get("PTXVM_JAX") != "1":
        return
    import jax

    if jax.__version_info__ < (0, 10):
        sys.stderr.write(f"ptxvm: JAX needs to be release 0.10 or newer, and this is {jax.__version__}\n")
        return
    from jax._src import hardware_utils, lib

    hardware_utils.has_visible_nvidia_gpu = lambda: True
    # The folder of NVIDIA's `ptxas`, where it would be looked for first.
    lib.cuda_path = None
    given = os.environ.get("XLA_FLAGS", "")
    names = {flag.lstrip("-").partition("=")[0] for flag in given.split()}
    # XLA's vector loads read past its constants, in threads that do not use what they read.
    os.environ.setdefault("PTXVM_PAD_VARIABLES", "1")
    ours = [f"--{name}={value}" for name, value in _FLAGS.items() if name not in names]
    os.environ["XLA_FLAGS"] = " ".join([*ours, given]).rstrip()
