"""The fixture ``ptx``: a kernel compared with a function of NumPy's.

    def test_saxpy(ptx):
        saxpy = ptx.kernel("saxpy.ptx")
        ptx.compare(saxpy, lambda a, x, y: a * x + y, ptx.size, 2.5, ptx.input, ptx.inout, rtol=1e-6)

``pytest --ptxvm`` compares every kernel also on the reference engine and with warps in shuffled orders: slower, and finds races.
"""

import pytest


def pytest_addoption(parser):
    group = parser.getgroup("ptxvm", "kernels on ptxvm")
    group.addoption(
        "--ptxvm",
        action="store_true",
        help="run each kernel of the fixture ptx also on the reference engine, and with warps in shuffled orders",
    )


@pytest.fixture
def ptx(request):
    """Kernels, and their comparison with functions of NumPy's."""
    from ._compare import Kernels

    return Kernels(request.config.getoption("--ptxvm"), request.path if hasattr(request, "path") else None)
