"""What PyTorch's operators cost on CUDA tensors over what they cost on the CPU's, and what `import torch` costs.

Prints a line for each; nothing is held against them.
"""

import subprocess
import sys
import timeit

import torch

OPERATORS = ("x + y", "x.add_(y)", "x.relu()", "x * 2.0", "x.sum()")


def microseconds(what, device):
    """The best of seven runs, for tensors of 64 times 64."""
    names = {"x": torch.ones(64, 64, device=device), "y": torch.ones(64, 64, device=device)}
    number = 3000
    return min(timeit.repeat(what, globals=names, number=number, repeat=7)) / number * 1e6


def seconds_of_import(autoload):
    """The best of five."""
    code = "import time; start = time.time(); import torch; print(time.time() - start)"
    command = ["env", f"TORCH_DEVICE_BACKEND_AUTOLOAD={autoload}", sys.executable, "-c", code]
    if not autoload:
        # As without `ptxvm exec`.
        command[1:1] = ["-u", "LD_AUDIT", "-u", "LD_LIBRARY_PATH"]
    return min(float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(5))


for what in OPERATORS:
    cuda, cpu = (microseconds(what, device) for device in ("cuda", "cpu"))
    print(f"{what}: {cuda:.1f} us, on the CPU {cpu:.1f} us, {cuda - cpu:.1f} us more")
ours, plain = seconds_of_import(1), seconds_of_import(0)
print(f"import torch: {ours:.2f} s, without ptxvm {plain:.2f} s, {ours - plain:.2f} s more")
