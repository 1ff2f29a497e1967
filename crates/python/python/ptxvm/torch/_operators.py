"""One operator on CUDA tensors, computed by its CPU kernel."""

import functools
import os
import sys

import torch

from . import _asserts, _driver, _graphs, _random
from ._memory import Unsupported, give_back, on_device, on_host, to_read

_Tensor = torch.Tensor
_no_torch_function = torch._C.DisableTorchFunction
_is_capturing = torch._C._cuda_isCurrentStreamCapturing
_CPU = torch.device("cpu")
_TRACKS_WRITES = _driver.TRACKS_WRITES

#: Operators that take CPU tensors of any size beside CUDA tensors. All others take numbers (tensors without dimensions) only.
TAKES_CPU_TENSORS = frozenset({
    "_ctc_loss",
    "_ctc_loss_backward",
    "_foreach_copy_",
    "_index_put_impl_",
    "_nested_from_padded_and_nested_example",
    "_nested_view_from_buffer",
    "_to_copy",
    "_use_cudnn_ctc_loss",
    "_use_miopen_ctc_loss",
    "copy_",
    "index",
    "segment_reduce",
})

_cuda = functools.cache(functools.partial(torch.device, "cuda"))

_NOTE = (
    "ptxvm: PyTorch's own operators on CUDA tensors run as its CPU kernels: right to rounding, not the bits of a GPU. "
    "Kernels of Triton, torch.compile and your own run in ptxvm's engine.\n"
)
_has_said = False


def _say_once():
    """Writes the note, in the first process alone of those that one ``ptxvm exec`` began."""
    global _has_said
    _has_said = True
    folder = os.environ.get("PTXVM_LIBRARIES")
    if folder:
        try:
            open(os.path.join(folder, "note-of-torch"), "x").close()
        except FileExistsError:
            return
        except OSError:
            pass
    sys.stderr.write(_NOTE)


class Call:
    """The arguments of one call on the host."""

    __slots__ = ("cpu", "device", "operator", "pairs", "written")

    def __init__(self, operator):
        self.operator = operator
        #: The number of the CUDA device, -1 before it is known.
        self.device = -1
        #: A CPU tensor that is more than a number.
        self.cpu = None
        #: Host views, each with its CUDA tensor, and those that the operator writes.
        self.pairs = []
        self.written = []

    def to_host(self, value, is_written):
        """An argument as the CPU kernel takes it. Generators stay: they are asked when the kernel runs."""
        if isinstance(value, _Tensor):
            if not value.is_cuda:
                if self.cpu is None and value.dim():
                    self.cpu = value
                return value
            device = value.get_device()
            if device != self.device:
                self.on(device)
            if not is_written:
                host = to_read(value)
                self.pairs.append((host, value))
                return host
            # Memory of the host's own can be resized.
            is_empty = value.layout is torch.strided and not value.numel()
            host = torch.empty(value.size(), dtype=value.dtype, device=_CPU) if is_empty else on_host(value)
            self.pairs.append((host, value))
            self.written.append((host, value))
            return host
        if isinstance(value, (list, tuple)):
            return type(value)([self.to_host(item, is_written) for item in value])
        if isinstance(value, torch.device) and value.type == "cuda":
            if self.device < 0:
                self.device = torch.cuda.current_device() if value.index is None else value.index
            return _CPU
        return value

    def on(self, device):
        """One of the tensors is on this device."""
        if self.device < 0:
            self.device = device
        elif self.device != device and self.operator.packet not in TAKES_CPU_TENSORS:
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"cuda:{self.device} and cuda:{device}!"
            )

    def to_device(self, result):
        """A result of the CPU kernel as the program gets it."""
        if isinstance(result, _Tensor):
            for host, tensor in self.pairs:
                if host is result:
                    return tensor
            return on_device(result, _cuda(self.device))
        if isinstance(result, (list, tuple)):
            return type(result)([self.to_device(item) for item in result])
        return result

    def settle(self):
        """Brings into the CUDA tensors what the kernel has written elsewhere, and tells the tools."""
        for host, tensor in self.written:
            strided = tensor.layout is torch.strided
            if not strided or host.data_ptr() != tensor.data_ptr() or host.size() != tensor.size():
                give_back(host, tensor)
            if _TRACKS_WRITES and strided:
                _driver.wrote(tensor)


class Operator:
    """An operator of PyTorch under a CUDA dispatch key."""

    def __init__(self, overload, body=None):
        schema = overload._schema
        self.overload = overload
        # Without `OpOverload.__call__`, which costs half a microsecond.
        self.body = body or overload._op
        self.name = str(overload)
        self.packet = schema.name.partition("::")[2]
        self.takes_cpu_tensors = self.packet in TAKES_CPU_TENSORS
        self.writes = [bool(a.alias_info and a.alias_info.is_write) for a in schema.arguments]
        self.written_names = {a.name for a, written in zip(schema.arguments, self.writes) if written}
        self.tensors = [str(a.type) in ("Tensor", "Optional[Tensor]") for a in schema.arguments]
        #: Whether the operator refuses a number for a tensor when Python calls it. It is known after the first time.
        self.wants_tensors = False
        #: The position of the argument for a generator, if there is one.
        self.generator = next((i for i, a in enumerate(schema.arguments) if a.name == "generator"), None)
        self.is_random = torch.Tag.nondeterministic_seeded in overload.tags
        self.asserts = self.packet in _asserts.OPERATORS
        #: For each result that is an argument: the argument's position and name.
        self.is_argument = [_argument_of(result, schema.arguments) for result in schema.returns]

    def kernel(self):
        """The function that PyTorch calls for CUDA tensors."""
        writes, written_names, takes_cpu_tensors = self.writes, self.written_names, self.takes_cpu_tensors
        synchronize = _driver.synchronize

        def kernel(*args, **kwargs):
            with _no_torch_function():
                call = Call(self)
                to_host = call.to_host
                host = list(map(to_host, args, writes))
                named = {name: to_host(value, name in written_names) for name, value in kwargs.items()} if kwargs else kwargs
                if call.device < 0:
                    call.device = torch.cuda.current_device()
                if call.cpu is not None and not takes_cpu_tensors:
                    raise RuntimeError(
                        "Expected all tensors to be on the same device, but found at least two devices, "
                        f"cuda:{call.device} and cpu! (in {self.name})"
                    )
                if not _has_said:
                    _say_once()
                if not _is_capturing():
                    synchronize(call.device)
                    result = self.compute(call, host, named)
                    if call.written:
                        call.settle()
                    return self.results(call, result, args, kwargs)
            return _graphs.record(self, call, args, kwargs, host, named)

        return kernel

    def compute(self, call, host, named):
        """Runs the CPU kernel; its errors become those of a GPU."""
        try:
            if self.wants_tensors:
                host = self._with_tensors(host)
            if self.is_random:
                return self._draw(call.device, host, named)
            return self.body(*host, **named)
        except Exception as error:
            return self._failed(error, call, host, named)

    def _draw(self, device, host, named):
        position = self.generator
        if position is not None and position < len(host):
            host = [*host]
            host[position] = _random.host_generator(host[position], device)
            return self.body(*host, **named)
        if position is not None:
            named = {**named, "generator": _random.host_generator(named.get("generator"), device)}
            return self.body(*host, **named)
        with _random.DefaultGenerator(device):
            return self.body(*host, **named)

    def _failed(self, error, call, host, named):
        text = str(error)
        if "not resizable" in text and call.written:
            return self._with_memory_of_the_host(call, host, named)
        if not self.wants_tensors and "Expected a value of type 'Tensor'" in text:
            self.wants_tensors = True
            return self.compute(call, host, named)
        if self.asserts and _asserts.is_assertion(error):
            _asserts.fail(text, self.packet, call.device)
        if isinstance(error, NotImplementedError) or "not implemented for '" in text:
            raise Unsupported(f"ptxvm: PyTorch's CPU cannot compute {self.name} here: {text}") from error
        raise error

    def _with_tensors(self, host):
        """Numbers as tensors of the type to which the number promotes the first tensor."""
        first = next((value for value in host if isinstance(value, _Tensor)), None)
        if first is None:
            return host
        return [
            torch.tensor(value, dtype=torch.result_type(first, value), device=_CPU)
            if is_tensor and isinstance(value, (bool, int, float, complex))
            else value
            for value, is_tensor in zip(host, self.tensors)
        ]

    def _with_memory_of_the_host(self, call, host, named):
        """The kernel resizes a result, which it only can where the memory is the host's own."""
        fresh = {id(view): torch.empty_like(view) for view, _ in call.written}
        call.written = [(fresh[id(view)], tensor) for view, tensor in call.written]
        call.pairs += call.written
        host = [fresh.get(id(value), value) for value in host]
        named = {name: fresh.get(id(value), value) for name, value in named.items()}
        return self.compute(call, host, named)

    def results(self, call, result, args, kwargs):
        """The results as the program gets them: arguments themselves where the schema says so."""
        if len(self.is_argument) == 1:
            return self._one(call, result, self.is_argument[0], args, kwargs)
        if not self.is_argument:
            return None
        return tuple(self._one(call, one, of, args, kwargs) for one, of in zip(result, self.is_argument))

    @staticmethod
    def _one(call, result, of, args, kwargs):
        if of is None:
            return call.to_device(result)
        position, name = of
        return args[position] if position < len(args) else kwargs[name]


def _argument_of(result, arguments):
    """Position and name of the argument that a result of a schema is, if it is one."""
    if result.alias_info is None or not result.alias_info.is_write:
        return None
    for position, argument in enumerate(arguments):
        if argument.alias_info and argument.alias_info.before_set == result.alias_info.before_set:
            return position, argument.name
    return None
