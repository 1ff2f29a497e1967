"""Types of elements by their names."""

import numpy

#: PTX's names of formats that NumPy does not have, and ml_dtypes' names of them.
_OF_ML_DTYPES = {"bf16": "bfloat16", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}


def element_type(name):
    """A type of elements: NumPy's, or by its name NumPy's or ml_dtypes' (``"bfloat16"``, or ``"bf16"``)."""
    known = _OF_ML_DTYPES.get(name, name) if isinstance(name, str) else name
    if isinstance(known, str) and known.startswith(("bfloat16", "float8_", "float6_", "float4_", "int4", "uint4", "int2", "uint2")):
        try:
            import ml_dtypes
        except ImportError:
            raise TypeError(f"NumPy has no {name}: it is a type of the package ml_dtypes, which is not installed") from None
        if hasattr(ml_dtypes, known):
            return numpy.dtype(getattr(ml_dtypes, known))
    dtype = numpy.dtype(known)
    if dtype.kind == "f" and dtype.itemsize > 8:
        raise TypeError(f"PTX has no {dtype}, which is what NumPy calls {name!r}: write float16, float32 or float64")
    return dtype
