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
from ._observed import Address as Address
from ._observed import Finding as Finding
from ._observed import Flow as Flow
from ._observed import Origin as Origin
from ._observed import Original as Original
from ._observed import Passage as Passage
from ._observed import Site as Site
from ._observed import Step as Step
from ._observed import Value as Value
from ._observed import Watched as Watched
from ._observed import Write as Write
from ._profile import Profile
from ._texture import Sampler as Sampler
from ._texture import Surface as Surface
from ._texture import Texture as Texture

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
