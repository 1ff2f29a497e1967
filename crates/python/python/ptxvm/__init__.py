"""Runs, checks and tests NVIDIA PTX kernels on a CPU, bit for bit.

>>> import numpy, ptxvm
>>> module = ptxvm.Module("saxpy.ptx")
>>> x, y = numpy.ones(1000, "f4"), numpy.zeros(1000, "f4")
>>> module["saxpy"][4, 256](1000, 2.0, x, y)

Arrays are used in place: whatever has the buffer protocol, ``__array_interface__`` or DLPack. Numbers take the type of the kernel's
parameter, tuples become structures. What goes wrong is an :class:`Error` that shows the line, the thread and the array.
"""

import os as _os
import threading as _threading
from collections import OrderedDict as _OrderedDict

from ._error import ArgumentError, Diagnostic, Error, KernelNotFoundError
from ._native import Kernel, Launcher, Module, Report, __version__, check, stop
from ._native import explain as _explain
from ._observed import Address, Finding, Flow, Origin, Original, Passage, Site, Step, Value, Watched, Write

__all__ = [
    "Address",
    "ArgumentError",
    "Diagnostic",
    "Error",
    "Finding",
    "Flow",
    "Kernel",
    "KernelNotFoundError",
    "Launcher",
    "Module",
    "Origin",
    "Original",
    "Page",
    "Passage",
    "Report",
    "Sampler",
    "Site",
    "Step",
    "Surface",
    "Texture",
    "Value",
    "Watched",
    "Write",
    "check",
    "evaluate",
    "explain",
    "jobs",
    "launch",
    "profile",
    "stop",
]

_MODULES_KEPT = 64
_modules = _OrderedDict()
_modules_lock = _threading.Lock()


def _module(source, lenient):
    """A module, compiled when its source is first seen or has changed since."""
    if isinstance(source, Module):
        return source
    key = source
    if not isinstance(source, bytes) and not (isinstance(source, str) and ("\n" in source or ".version" in source)):
        path = _os.path.abspath(_os.fspath(source))
        try:
            status = _os.stat(path)
        except OSError:
            return Module(source, lenient=lenient)
        key = (path, status.st_mtime_ns, status.st_size)
    key = (key, lenient)
    with _modules_lock:
        module = _modules.get(key)
        if module is not None:
            _modules.move_to_end(key)
            return module
    module = Module(source, lenient=lenient)
    with _modules_lock:
        _modules[key] = module
        while len(_modules) > _MODULES_KEPT:
            _modules.popitem(last=False)
    return module


def launch(source, *arguments, grid=1, block=None, kernel=None, lenient=False, **options):
    """Runs a kernel of a module, a file or a text, and returns its :class:`Report`.

    ``kernel`` may be left out where there is one; ``block`` too, if the kernel says how many threads it wants (``.reqntid``).
    Options are those of a launch: ``threads``, ``deterministic``, ``schedule``, ``max_steps``, ``cooperative``, ``cluster``, ``engine``, ``shared``,
    ``blocks``, ``bind``, ``progress``, ``stop``, ``output``, and one of those that look at what the launch does, of which the
    report has the result:

    - ``tool="racecheck,initcheck"``: ``findings``, and ``raise_for_findings()``. For initcheck, ``undefined`` are arrays that nobody wrote.
    - ``trace=(block, thread)``, each a number or coordinates: the steps of the thread.
    - ``watch=(array, index)``, an address, or a list of them: the writes to these elements.
    - ``first_nan=True``: where the first NaN and the first infinity come from.
    """
    module = _module(source, lenient)
    if kernel is None:
        names = module.kernels
        if len(names) != 1:
            listed = ", ".join(names) or "none"
            raise KernelNotFoundError(f"say which kernel: kernel=NAME; there are {listed}", code="no-such-name")
        kernel = names[0]
    return module[kernel][grid, block](*arguments, **options)


class Page(str):
    """A page of Markdown, which notebooks show as such."""

    def _repr_markdown_(self):
        return str(self)

    def __repr__(self):
        return str(self)


def explain(name):
    """What there is to know about an instruction (``"setp"``), a form of it (``"setp.lt.f16x2"``) or a modifier (``".ftz"``)."""
    return Page(_explain(name))


def profile(launcher, *arguments, **options):
    """Runs ``kernel[grid, block]`` and returns a :class:`~ptxvm._profile.Profile`: what every line did, and the share of the time."""
    from ._profile import run

    return run(launcher, arguments, options)


def evaluate(instruction, *operands, target=None):
    """What an instruction returns for operands: numbers, or whole arrays, which are broadcast as NumPy does.

    Arrays are of the operand's type, or of as many bits. Packed operands (``.f16x2``) are arrays of integers that hold all lanes, or of
    elements, whose last axis has the lanes, lowest first; such are results. Instructions with two results return a tuple.
    """
    from ._evaluate import evaluate

    return evaluate(instruction, operands, target)


def __getattr__(name):
    # They need NumPy, which takes a while to import.
    if name == "jobs":
        import importlib

        return importlib.import_module(".jobs", __name__)
    if name in ("Sampler", "Surface", "Texture"):
        from . import _texture

        return getattr(_texture, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *__all__})
