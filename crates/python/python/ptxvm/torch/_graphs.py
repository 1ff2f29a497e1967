"""Operators that are called while a CUDA graph is captured: they become nodes that run whenever the graph runs."""

import sys
import traceback

import torch

from . import _driver
from ._memory import on_host

#: The functions of all nodes. A graph may run until the process ends.
_functions: list = []


def record(operator, call, args, kwargs, host, named):
    """Adds a node for an operator to the graph, and returns its results, which have their values after a run."""
    device = torch.device("cuda", call.device)
    made = operator.results(_Made(device), _shapes(operator, args, kwargs), args, kwargs)
    views = [on_host(tensor) for tensor in _tensors(made) if all(tensor is not written for _, written in call.written)]

    def run(_):
        try:
            with torch._C.DisableTorchFunction(), torch.no_grad():
                results = operator.compute(call, list(host), dict(named))
                fresh = [r for r in _tensors(results) if all(r is not view for view, _ in call.pairs)]
                for view, result in zip(views, fresh):
                    view.copy_(result)
                if _driver.TRACKS_WRITES:
                    for view in views + [view for view, _ in call.written]:
                        _driver.wrote(view)
        except Exception:
            sys.stderr.write(f"ptxvm: {operator.name} failed in a CUDA graph:\n{traceback.format_exc()}")

    function = _driver.HOST_FUNCTION(run)
    _functions.append(function)
    _driver.launch_host_function(function, call.device)
    # The views are on the graph's memory, which stays; the tensors themselves may go.
    call.pairs = [(view, None) for view, _ in call.pairs]
    call.written = [(view, None) for view, _ in call.written]
    return made


def _shapes(operator, args, kwargs):
    """The results as fake tensors: a capture computes nothing."""
    from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException, FakeTensorMode

    with FakeTensorMode() as mode:

        def fake(value):
            if isinstance(value, torch.Tensor):
                return mode.from_tensor(value)
            if isinstance(value, (list, tuple)):
                return type(value)([fake(item) for item in value])
            return value

        try:
            return operator.overload(*fake(args), **{name: fake(value) for name, value in kwargs.items()})
        except (DataDependentOutputException, DynamicOutputShapeException):
            raise RuntimeError(
                f"CUDA error: operation not permitted when stream is capturing ({operator.name} depends on values)"
            ) from None


def _tensors(results):
    if isinstance(results, torch.Tensor):
        return [results]
    if isinstance(results, (list, tuple)):
        return [tensor for item in results for tensor in _tensors(item)]
    return []


class _Made:
    """Makes CUDA tensors for fake results, in place of a call."""

    def __init__(self, device):
        self.device = device

    def to_device(self, result):
        if isinstance(result, torch.Tensor):
            return torch.empty_strided(result.size(), result.stride(), dtype=result.dtype, device=self.device)
        if isinstance(result, (list, tuple)):
            return type(result)([self.to_device(item) for item in result])
        return result
