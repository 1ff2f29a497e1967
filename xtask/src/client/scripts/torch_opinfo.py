"""PyTorch's operators on CUDA tensors against the CPU's, over the samples of PyTorch's own OpInfo tables.

usage: torch_opinfo.py [PART PARTS]: each pair of operator and dtype whose CPU kernel takes the samples, forward and gradient, up
to three samples. Prints `passed PAIR`, `failed PAIR: why` or `skipped PAIR: why`, and `done`. The
variable ONLY chooses operators by name.
"""

import copy
import os
import re
import sys
import traceback
import warnings

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_flatten, tree_map

DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.bool, torch.complex64)
SAMPLES = 3
#: Their results are random, or memory that nobody has written: shapes and dtypes are compared.
VALUES_DIFFER = frozenset("""
    bernoulli cauchy empty empty_like empty_permuted empty_strided exponential geometric log_normal multinomial new_empty
    new_empty_strided nn.functional.alpha_dropout nn.functional.dropout nn.functional.dropout2d nn.functional.dropout3d
    nn.functional.feature_alpha_dropout nn.functional.fractional_max_pool2d nn.functional.fractional_max_pool3d
    nn.functional.multi_head_attention_forward nn.functional.rrelu nn.functional.scaled_dot_product_attention normal
    pca_lowrank rand_like randint randint_like randn randn_like svd_lowrank uniform
""".split())
#: Their tensors of indices stay on the CPU.
KEEP_CPU = ("tensor_split",)


#: PyTorch has no such operator on a GPU either.
NO_CUDA = re.compile(r"Could not run .* from the '(Sparse|SparseCsr)?CUDA' backend")


def plain(result):
    return [t.detach() for t in tree_flatten(result)[0] if isinstance(t, torch.Tensor)]


def on_cuda(x):
    """A copy on the device. A view has the rest of its storage, too."""
    count = x.untyped_storage().nbytes() // x.element_size() if x.layout == torch.strided else 0
    if count <= x.numel():
        return x.detach().cuda()
    whole = torch.empty(0, dtype=x.dtype).set_(x.untyped_storage(), 0, (count,), (1,))
    return whole.cuda().as_strided(x.size(), x.stride(), x.storage_offset())


def to_cuda(value):
    def move(x):
        if isinstance(x, torch.Tensor):
            return on_cuda(x).requires_grad_(x.requires_grad)
        if isinstance(x, torch.device) or (isinstance(x, str) and x == "cpu"):
            return "cuda"
        return x
    return tree_map(move, value)


def run(op, sample, with_gradient):
    result = op(sample.input, *sample.args, **sample.kwargs)
    out = list(plain(result))
    if with_gradient:
        inputs = [t for t in tree_flatten((sample.input, sample.args, sample.kwargs))[0]
                  if isinstance(t, torch.Tensor) and t.requires_grad]
        outputs = [t for t in tree_flatten(result)[0] if isinstance(t, torch.Tensor) and t.requires_grad]
        if inputs and outputs:
            total = sum((t.abs() if t.is_complex() else t).sum() for t in outputs)
            out += [g for g in torch.autograd.grad(total, inputs, allow_unused=True) if g is not None]
    return out


def compare(ours, theirs, values):
    assert len(ours) == len(theirs), f"{len(ours)} results for {len(theirs)}"
    for a, b in zip(ours, theirs):
        assert a.shape == b.shape and a.dtype == b.dtype, f"{a.shape} {a.dtype} for {b.shape} {b.dtype}"
        assert a.is_cuda, "a result is not on the device"
        if values:
            torch.testing.assert_close(a.cpu(), b, rtol=2e-3 if b.dtype in (torch.half, torch.bfloat16) else 1e-4,
                                       atol=1e-2 if b.dtype in (torch.half, torch.bfloat16) else 1e-4, equal_nan=True)


def pair(op, dtype):
    """`None` if the CPU cannot, else what is wrong (an empty string if nothing)."""
    gradient = op.supports_autograd and dtype.is_floating_point
    checked = 0
    try:
        samples = []
        for sample in op.sample_inputs("cpu", dtype, requires_grad=gradient):
            samples.append(sample)
            if len(samples) == SAMPLES:
                break
    except Exception:
        return None
    for sample in samples:
        try:
            moved = copy.copy(sample)
            moved.input, moved.args, moved.kwargs = to_cuda((sample.input, sample.args, sample.kwargs))
            if op.name in KEEP_CPU:
                moved.args, moved.kwargs = sample.args, sample.kwargs
            torch.manual_seed(0)
            expected = run(op, sample, gradient)
        except Exception:
            continue
        checked += 1
        try:
            torch.manual_seed(0)
            got = run(op, moved, gradient)
            compare(got, expected, op.name not in VALUES_DIFFER)
        except Exception as error:
            if NO_CUDA.search(str(error)):
                return None
            if os.environ.get("SHOW"):
                traceback.print_exc()
            return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    return "" if checked else None


def main():
    part, parts = (int(sys.argv[1]), int(sys.argv[2])) if len(sys.argv) > 2 else (0, 1)
    only = os.environ.get("ONLY")
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for index, op in enumerate(op_db):
        if index % parts != part or (only and op.name not in only.split(",")):
            continue
        for dtype in DTYPES:
            name = f"{op.full_name} {str(dtype)[6:]}"
            if dtype not in op.supported_dtypes("cpu"):
                if dtype in op.supported_dtypes("cuda"):
                    print(f"skipped {name}: the CPU has no kernel")
                continue
            what = pair(op, dtype)
            if what is None:
                print(f"skipped {name}: the CPU does not compute the samples, or CUDA has no kernel")
            else:
                print(f"failed {name}: {what}" if what else f"passed {name}", flush=True)
    print("done")


main()
