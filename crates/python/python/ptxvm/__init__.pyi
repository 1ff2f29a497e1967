from typing import Any, Optional, Union

from . import jobs as jobs
from ._error import ArgumentError as ArgumentError
from ._error import Diagnostic as Diagnostic
from ._error import Error as Error
from ._error import KernelNotFoundError as KernelNotFoundError
from ._native import Kernel as Kernel
from ._native import Launcher as Launcher
from ._native import Module as Module
from ._native import Report as Report
from ._native import __version__ as __version__
from ._native import _Extents, _Source
from ._native import check as check
from ._native import stop as stop
from ._profile import Profile
from ._texture import Sampler as Sampler
from ._texture import Surface as Surface
from ._texture import Texture as Texture

__all__ = [
    "ArgumentError",
    "Diagnostic",
    "Error",
    "Kernel",
    "KernelNotFoundError",
    "Launcher",
    "Module",
    "Page",
    "Report",
    "Sampler",
    "Surface",
    "Texture",
    "check",
    "evaluate",
    "explain",
    "jobs",
    "launch",
    "profile",
    "stop",
]

def launch(
    source: Union[_Source, Module],
    *arguments: Any,
    grid: _Extents = 1,
    block: Optional[_Extents] = None,
    kernel: Optional[str] = None,
    lenient: bool = False,
    **options: Any,
) -> Report: ...

class Page(str):
    def _repr_markdown_(self) -> str: ...

def explain(name: str) -> Page: ...
def profile(launcher: Launcher, *arguments: Any, **options: Any) -> Profile: ...
def evaluate(instruction: str, *operands: Any, target: Optional[str] = None) -> Any: ...
