from collections.abc import Sequence
from typing import Any, Optional, Union

from ._native import Object

_Border = Union[float, Sequence[float]]
_Address = Union[str, Sequence[str]]
_Extent = Union[int, Sequence[int]]

class _Described(Object):
    def __reduce__(self) -> tuple[Any, ...]: ...

class Texture(_Described):
    """An array as an image that kernels sample."""

    def __new__(
        cls,
        array: Any,
        *,
        geometry: Optional[str] = None,
        channels: Optional[int] = None,
        format: Optional[str] = None,
        extent: Optional[_Extent] = None,
        layers: Optional[int] = None,
        levels: Optional[int] = None,
        samples: Optional[int] = None,
        filter: Optional[str] = None,
        mipfilter: Optional[str] = None,
        address: Optional[_Address] = None,
        normalized: bool = False,
        normalized_float: bool = False,
        srgb: bool = False,
        seamless: bool = False,
        border: Optional[_Border] = None,
        bias: Optional[float] = None,
        minlod: Optional[float] = None,
        maxlod: Optional[float] = None,
    ) -> Texture: ...

class Surface(_Described):
    """An array as an image that kernels read and write in place."""

    def __new__(
        cls,
        array: Any,
        *,
        geometry: Optional[str] = None,
        channels: Optional[int] = None,
        format: Optional[str] = None,
        extent: Optional[_Extent] = None,
        layers: Optional[int] = None,
    ) -> Surface: ...

class Sampler(_Described):
    """How textures are sampled, in modules of ``.target texmode_independent``."""

    def __new__(
        cls,
        *,
        filter: Optional[str] = None,
        mipfilter: Optional[str] = None,
        address: Optional[_Address] = None,
        normalized: bool = False,
        seamless: bool = False,
        border: Optional[_Border] = None,
        bias: Optional[float] = None,
        minlod: Optional[float] = None,
        maxlod: Optional[float] = None,
    ) -> Sampler: ...
