"""Operations of tinygrad in all types, forward and backward, against numpy: a line for each."""
import math
import sys

import numpy as np
from tinygrad import Tensor, TinyJit, dtypes

CHOSEN = sys.argv[1:]
random = np.random.default_rng(0)
FLOATS = {"f16": (dtypes.half, np.float16, 2e-2), "f32": (dtypes.float, np.float32, 1e-4), "f64": (dtypes.double, np.float64, 1e-6)}
INTEGERS = {
    "i8": (dtypes.int8, np.int8), "i16": (dtypes.int16, np.int16), "i32": (dtypes.int32, np.int32), "i64": (dtypes.int64, np.int64),
    "u8": (dtypes.uint8, np.uint8), "u16": (dtypes.uint16, np.uint16), "u32": (dtypes.uint32, np.uint32), "u64": (dtypes.uint64, np.uint64),
}


def report(name, work):
    if CHOSEN and not any(word in name for word in CHOSEN):
        return
    try:
        work()
        print("passed", name, flush=True)
    except Exception as error:
        print(f"failed {name}: {type(error).__name__}: {str(error).strip().splitlines()[:4]}", flush=True)


def close(got, wanted, tolerance):
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert got.shape == wanted.shape, (got.shape, wanted.shape)
    np.testing.assert_allclose(got.astype(np.float64), wanted.astype(np.float64), rtol=tolerance, atol=tolerance)


# Name, in tinygrad, in numpy, derivative (or None), from, to.
UNARY = [
    ("neg", lambda x: -x, lambda x: -x, lambda x: -np.ones_like(x), -3, 3),
    ("abs", lambda x: x.abs(), np.abs, np.sign, -3, 3),
    ("exp", lambda x: x.exp(), np.exp, np.exp, -3, 2),
    ("exp2", lambda x: x.exp2(), np.exp2, lambda x: np.exp2(x) * math.log(2), -3, 3),
    ("log", lambda x: x.log(), np.log, lambda x: 1 / x, 0.5, 4),
    ("log2", lambda x: x.log2(), np.log2, lambda x: 1 / x / math.log(2), 0.5, 4),
    ("sqrt", lambda x: x.sqrt(), np.sqrt, lambda x: 0.5 / np.sqrt(x), 0.5, 4),
    ("rsqrt", lambda x: x.rsqrt(), lambda x: 1 / np.sqrt(x), lambda x: -0.5 * x**-1.5, 0.5, 4),
    ("reciprocal", lambda x: x.reciprocal(), lambda x: 1 / x, lambda x: -1 / x**2, 0.5, 4),
    ("sin", lambda x: x.sin(), np.sin, np.cos, -3, 3),
    ("cos", lambda x: x.cos(), np.cos, lambda x: -np.sin(x), -3, 3),
    ("tan", lambda x: x.tan(), np.tan, lambda x: 1 / np.cos(x) ** 2, -1, 1),
    ("tanh", lambda x: x.tanh(), np.tanh, lambda x: 1 - np.tanh(x) ** 2, -2, 2),
    ("sigmoid", lambda x: x.sigmoid(), lambda x: 1 / (1 + np.exp(-x)), lambda x: np.exp(-x) / (1 + np.exp(-x)) ** 2, -3, 3),
    ("relu", lambda x: x.relu(), lambda x: np.maximum(x, 0), lambda x: (x > 0).astype(x.dtype), -3, 3),
    ("silu", lambda x: x.silu(), lambda x: x / (1 + np.exp(-x)), None, -3, 3),
    ("gelu", lambda x: x.gelu(), lambda x: 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3))), None, -3, 3),
    ("elu", lambda x: x.elu(), lambda x: np.where(x > 0, x, np.exp(x) - 1), lambda x: np.where(x > 0, 1, np.exp(x)), -3, 3),
    ("softplus", lambda x: x.softplus(), lambda x: np.log1p(np.exp(x)), lambda x: 1 / (1 + np.exp(-x)), -3, 3),
    ("square", lambda x: x.square(), np.square, lambda x: 2 * x, -3, 3),
    ("floor", lambda x: x.floor(), np.floor, None, -3, 3),
    ("ceil", lambda x: x.ceil(), np.ceil, None, -3, 3),
    ("trunc", lambda x: x.trunc(), np.trunc, None, -3, 3),
    ("clip", lambda x: x.clip(-1, 1), lambda x: np.clip(x, -1, 1), lambda x: (np.abs(x) < 1).astype(x.dtype), -3, 3),
    ("sign", lambda x: x.sign(), np.sign, None, -3, 3),
    ("sum", lambda x: x.sum(), lambda x: x.sum(dtype=np.float64), lambda x: np.ones_like(x), -1, 1),
    ("mean", lambda x: x.mean(0), lambda x: x.mean(0, dtype=np.float64), lambda x: np.ones_like(x) / len(x), -1, 1),
    ("max", lambda x: x.max(1), lambda x: x.max(1), None, -3, 3),
    ("min", lambda x: x.min(1), lambda x: x.min(1), None, -3, 3),
    ("prod", lambda x: x[:, :4].prod(1), lambda x: x[:, :4].prod(1), None, 0.5, 1.5),
    ("var", lambda x: x.var(1), lambda x: x.astype(np.float64).var(1, ddof=1), None, -1, 1),
    ("cumsum", lambda x: x[:, :8].cumsum(1), lambda x: np.cumsum(x[:, :8], 1, dtype=np.float64), None, -1, 1),
    ("argmax", lambda x: x.argmax(1), lambda x: x.argmax(1), None, -3, 3),
    ("sort", lambda x: x[:, :16].sort(1)[0], lambda x: np.sort(x[:, :16], 1), None, -3, 3),
    ("softmax", lambda x: x.softmax(1), lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True), None, -1, 1),
    ("log_softmax", lambda x: x.log_softmax(1), lambda x: x - np.log(np.exp(x.astype(np.float64)).sum(1, keepdims=True)), None, -1, 1),
    ("logsumexp", lambda x: x.logsumexp(1), lambda x: np.log(np.exp(x.astype(np.float64)).sum(1)), None, -1, 1),
    ("layernorm", lambda x: x.layernorm(), lambda x: (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5), None, -1, 1),
    ("transpose", lambda x: x.transpose(), lambda x: x.T, lambda x: np.ones_like(x), -3, 3),
    ("reshape", lambda x: x.reshape(-1), lambda x: x.reshape(-1), lambda x: np.ones_like(x), -3, 3),
    ("flip", lambda x: x.flip(0), lambda x: x[::-1], lambda x: np.ones_like(x), -3, 3),
    ("pad", lambda x: x.pad(((1, 2), (0, 3))), lambda x: np.pad(x, ((1, 2), (0, 3))), lambda x: np.ones_like(x), -3, 3),
    ("roll", lambda x: x.roll(3, 1), lambda x: np.roll(x, 3, 1), lambda x: np.ones_like(x), -3, 3),
    ("slice", lambda x: x[2:9, ::3], lambda x: x[2:9, ::3], None, -3, 3),
    ("tril", lambda x: x.tril(), np.tril, lambda x: np.tril(np.ones_like(x)), -3, 3),
]

BINARY = [
    ("add", lambda a, b: a + b, np.add, lambda a, b: np.ones_like(a)),
    ("sub", lambda a, b: a - b, np.subtract, lambda a, b: np.ones_like(a)),
    ("mul", lambda a, b: a * b, np.multiply, lambda a, b: b),
    ("div", lambda a, b: a / b, np.divide, lambda a, b: 1 / b),
    ("pow", lambda a, b: a.pow(b), np.power, lambda a, b: b * a ** (b - 1)),
    ("maximum", lambda a, b: a.maximum(b), np.maximum, lambda a, b: (a > b).astype(a.dtype)),
    ("minimum", lambda a, b: a.minimum(b), np.minimum, lambda a, b: (a < b).astype(a.dtype)),
    ("where", lambda a, b: (a > b).where(a, b * 2), lambda a, b: np.where(a > b, a, b * 2), lambda a, b: (a > b).astype(a.dtype)),
    ("matmul", lambda a, b: a @ b.T, lambda a, b: (a.astype(np.float64) @ b.T.astype(np.float64)), lambda a, b: np.tile(b.sum(0), (len(a), 1))),
    ("outer", lambda a, b: a[0].reshape(-1, 1) * b[0], lambda a, b: np.outer(a[0], b[0]), None),
    ("compare", lambda a, b: (a < b) ^ (a >= b * 2), lambda a, b: (a < b) ^ (a >= b * 2), None),
    ("cat", lambda a, b: a.cat(b, dim=1), lambda a, b: np.concatenate([a, b], 1), lambda a, b: np.ones_like(a)),
]

OF_INTEGERS = [
    ("add", lambda a, b: a + b, np.add),
    ("sub", lambda a, b: a - b, np.subtract),
    ("mul", lambda a, b: a * b, np.multiply),
    ("idiv", lambda a, b: a // b, np.floor_divide),
    ("mod", lambda a, b: a % b, np.mod),
    ("and", lambda a, b: a & b, np.bitwise_and),
    ("or", lambda a, b: a | b, np.bitwise_or),
    ("xor", lambda a, b: a ^ b, np.bitwise_xor),
    ("maximum", lambda a, b: a.maximum(b), np.maximum),
    ("where", lambda a, b: (a > b).where(a, b), lambda a, b: np.where(a > b, a, b)),
    ("less", lambda a, b: a < b, np.less),
    ("equal", lambda a, b: a == b, np.equal),
]


def gradient(result, of, kind):
    # What is a constant would be computed by the CPU, with clang: zeros of the device are added.
    return (result.sum().gradient(of)[0] + Tensor(np.zeros(of.shape, kind)).realize()).numpy()


def check_unary(name, dtype, kind, tolerance, work, wanted, derivative, low, high):
    x = random.uniform(low, high, (19, 33)).astype(kind)
    tensor = Tensor(x, dtype=dtype)
    result = work(tensor)
    close(result.numpy(), wanted(x), tolerance)
    if derivative is not None:
        close(gradient(result, tensor, kind), derivative(x), tolerance)


def check_binary(dtype, kind, tolerance, work, wanted, derivative):
    a, b = (random.uniform(0.5, 2, (17, 23)).astype(kind) for _ in range(2))
    first, second = Tensor(a, dtype=dtype), Tensor(b, dtype=dtype)
    result = work(first, second)
    close(result.numpy(), wanted(a, b), tolerance * 4)
    if derivative is not None:
        close(gradient(result, first, kind), derivative(a, b), tolerance * 4)


def check_integers(dtype, kind, work, wanted):
    info = np.iinfo(kind)
    a = random.integers(info.min, info.max, 200, dtype=kind, endpoint=True)
    b = random.integers(1, 100, 200).astype(kind)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(work(Tensor(a, dtype=dtype), Tensor(b, dtype=dtype)).numpy(), wanted(a, b))


for type_name, (dtype, kind, tolerance) in FLOATS.items():
    for name, work, wanted, derivative, low, high in UNARY:
        report(f"{name}.{type_name}", lambda: check_unary(name, dtype, kind, tolerance, work, wanted, derivative, low, high))
    for name, work, wanted, derivative in BINARY:
        report(f"{name}.{type_name}", lambda: check_binary(dtype, kind, tolerance, work, wanted, derivative))
for type_name, (dtype, kind) in INTEGERS.items():
    for name, work, wanted in OF_INTEGERS:
        report(f"{name}.{type_name}", lambda: check_integers(dtype, kind, work, wanted))


def check_bfloat16():
    # Its numbers are the upper halves of those of float32.
    x = (random.uniform(-3, 3, 500).astype(np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32)
    y = Tensor(x).cast(dtypes.bfloat16)
    close((y * y + y).cast(dtypes.float).numpy(), x * x + x, 2e-2)


def check_casts():
    x = random.integers(0, 100, 300)
    for dtype, kind in INTEGERS.values():
        for float_type, float_kind, _ in FLOATS.values():
            np.testing.assert_array_equal(Tensor(x.astype(kind), dtype=dtype).cast(float_type).numpy(), x.astype(float_kind))
            np.testing.assert_array_equal(Tensor(x.astype(float_kind), dtype=float_type).cast(dtype).numpy(), x.astype(kind))
    np.testing.assert_array_equal(Tensor(x % 3).cast(dtypes.bool).numpy(), x % 3 != 0)


def check_shifts():
    x = random.integers(0, 1 << 32, 300, dtype=np.uint32)
    np.testing.assert_array_equal((Tensor(x) << 5).numpy(), x << 5)
    np.testing.assert_array_equal((Tensor(x) >> 7).numpy(), x >> 7)


def check_bool():
    a, b = random.integers(0, 2, 300).astype(bool), random.integers(0, 2, 300).astype(bool)
    np.testing.assert_array_equal((Tensor(a) & Tensor(b)).numpy(), a & b)
    np.testing.assert_array_equal((Tensor(a) | Tensor(b)).logical_not().numpy(), ~(a | b))


def check_gather():
    x, index = random.uniform(size=(20, 30)).astype(np.float32), random.integers(0, 30, (20, 5))
    close(Tensor(x).gather(1, Tensor(index)).numpy(), np.take_along_axis(x, index, 1), 0)


def check_convolution():
    x, w = random.uniform(-1, 1, (2, 3, 12, 12)).astype(np.float32), random.uniform(-1, 1, (4, 3, 3, 3)).astype(np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
    close(Tensor(x).conv2d(Tensor(w)).numpy(), np.einsum("ncijhw,ochw->noij", windows, w), 1e-4)


def check_pooling():
    x = random.uniform(-1, 1, (2, 3, 12, 12)).astype(np.float32)
    blocks = x.reshape(2, 3, 6, 2, 6, 2)
    close(Tensor(x).max_pool2d().numpy(), blocks.max((3, 5)), 0)
    close(Tensor(x).avg_pool2d().numpy(), blocks.mean((3, 5)), 1e-5)


def check_large_matmul():
    a, b = (random.uniform(-1, 1, (128, 128)).astype(np.float16) for _ in range(2))
    close((Tensor(a) @ Tensor(b)).numpy(), a.astype(np.float32) @ b.astype(np.float32), 3e-2)


def check_attention():
    q, k, v = (random.uniform(-1, 1, (2, 4, 16, 8)).astype(np.float32) for _ in range(3))
    scores = q @ k.swapaxes(2, 3) / math.sqrt(8)
    weights = np.exp(scores) / np.exp(scores).sum(3, keepdims=True)
    close(Tensor(q).scaled_dot_product_attention(Tensor(k), Tensor(v)).numpy(), weights @ v, 1e-4)


def check_random():
    Tensor.manual_seed(7)
    x = Tensor.rand(10000).numpy()
    assert 0 <= x.min() and x.max() < 1 and abs(x.mean() - 0.5) < 0.02 and len(np.unique(x)) > 9000


def check_jit():
    # From the third call on it is a graph.
    step = TinyJit(lambda x: ((x * 2 + 1).contiguous().sum() + x).realize())
    for i in range(5):
        x = np.full(100, i, np.float32)
        close(step(Tensor(x).realize()).numpy(), (x * 2 + 1).sum() + x, 1e-5)


def check_training():
    x = random.uniform(-1, 1, (64, 8)).astype(np.float32)
    wanted = x @ np.arange(8, dtype=np.float32).reshape(8, 1)
    w, losses = Tensor.zeros(8, 1).contiguous().realize(), []
    for _ in range(20):
        loss = (Tensor(x) @ w - Tensor(wanted)).square().mean()
        step = loss.gradient(w)[0]
        losses.append(loss.item())
        w = (w - step * 0.5).realize()
    assert losses[-1] < losses[0] / 20, losses


report("bfloat16", check_bfloat16)
report("casts", check_casts)
report("shifts", check_shifts)
report("bool", check_bool)
report("gather", check_gather)
report("conv2d", check_convolution)
report("pooling", check_pooling)
report("matmul.f16.128", check_large_matmul)
report("attention", check_attention)
report("random", check_random)
report("jit", check_jit)
report("training", check_training)
print("done")
