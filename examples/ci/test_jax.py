"""A kernel of Pallas, and what XLA compiles."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton


def add_kernel(x, y, out):
    i = pl.program_id(0) * 128
    out[pl.ds(i, 128)] = x[pl.ds(i, 128)] + y[pl.ds(i, 128)]


@jax.jit
def add(x, y):
    out = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(add_kernel, out, grid=x.size // 128, compiler_params=triton.CompilerParams())(x, y)


def test_pallas():
    x, y = jnp.arange(1024.0), jnp.ones(1024)
    assert x.device.platform == "gpu"
    np.testing.assert_array_equal(add(x, y), np.arange(1024) + 1)


def test_gradient():
    x = jnp.linspace(-2, 2, 100)
    np.testing.assert_allclose(jax.jit(jax.grad(lambda x: jnp.sum(jnp.tanh(x))))(x), 1 - np.tanh(x) ** 2, rtol=1e-5)
