"""PyTorch's own operators on CUDA tensors, without a GPU.

No wheel of PyTorch carries PTX of its own kernels, so ptxvm's driver cannot run them. Here each operator of PyTorch that is
called with CUDA tensors runs as PyTorch's CPU kernel, in place, on the device's memory. Kernels of Triton, of
``torch.compile`` and of users are PTX: they run in ptxvm's engine, bit for bit and checked.

The results of PyTorch's own operators are therefore right to rounding, and not the bits of a GPU. Random numbers depend on
the seed and are not those of a GPU.

``ptxvm exec -- python ...`` sets ``PTXVM_TORCH=1``; then ``import torch`` calls :func:`autoload` through the entry point
``torch.backends``, and programs need no change. It needs PyTorch 2.8 or newer.
"""

import os
import sys

__all__ = ["autoload", "install"]


def autoload() -> None:
    """What ``import torch`` calls at its end: installs the operators where the environment asks for them.

    A PyTorch without CUDA stays as it is. One that is too old does, too, and stderr says so.
    """
    if os.environ.get("PTXVM_TORCH") != "1":
        return
    import torch

    if torch.version.cuda is None:
        return
    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 8):
        sys.stderr.write(f"ptxvm: the operators of PyTorch need release 2.8 or newer, and this is {torch.__version__}\n")
        return
    install()


def install() -> None:
    """Gives PyTorch's own operators on CUDA tensors to its CPU kernels.

    Raises ``OSError`` where the CUDA driver is not ptxvm's, or has started without ``PTXVM_HOST_ACCESS=1``.
    """
    from . import _register

    # The driver reads it when it starts.
    os.environ["PTXVM_HOST_ACCESS"] = "1"

    _register.install()
