"""PyTorch on CUDA tensors: what a program does with it, group by group, against the same on the CPU where that says what is right.

Each group is a part (`parts.py`).
"""

import copy
import ctypes
import io
import os
import subprocess
import sys
import tempfile

import torch
import torch.nn.functional as F
from parts import part, run
from torch import nn

def close(ours, theirs, tolerance=1e-4):
    torch.testing.assert_close(ours.cpu(), theirs, rtol=tolerance, atol=tolerance)


def raises(kind, words, function):
    try:
        function()
    except kind as error:
        assert words in str(error), error
        return
    raise AssertionError(f"no {kind.__name__}")


def both(function, *tensors, tolerance=1e-4):
    """Compares a function of CUDA tensors with that of CPU tensors, gradients included."""
    results = []
    for device in ("cuda", "cpu"):
        inputs = [t.to(device).detach().requires_grad_(t.is_floating_point()) for t in tensors]
        out = function(*inputs)
        gradients = torch.autograd.grad(out.sum(), [t for t in inputs if t.requires_grad], allow_unused=True)
        results.append([out.detach(), *[g for g in gradients if g is not None]])
    for ours, theirs in zip(*results):
        assert ours.is_cuda
        close(ours, theirs, tolerance)


def module(make, *tensors, tolerance=1e-4):
    torch.manual_seed(0)
    ours = make()
    copies = {"cpu": ours, "cuda": copy.deepcopy(ours).cuda()}

    def run(*inputs):
        out = copies[inputs[0].device.type](*inputs)
        return out[0] if isinstance(out, tuple) else out

    both(run, *tensors, tolerance=tolerance)


@part
def queries():
    assert torch.cuda.is_available() and torch.cuda.device_count() == 1
    torch.cuda.init()
    assert torch.cuda.get_device_capability() == (9, 0) and torch.cuda.get_device_properties(0).total_memory > 0
    assert torch.cuda.is_bf16_supported() and torch.cuda.memory_allocated() >= 0 and torch.cuda.mem_get_info()[1] > 0
    assert "H100" in torch.cuda.get_device_name()


@part
def mixed_devices():
    x = torch.ones(3, device="cuda")
    raises(RuntimeError, "Expected all tensors to be on the same device", lambda: x + torch.ones(3))
    raises(RuntimeError, "Expected all tensors to be on the same device", lambda: x.view(1, 3) @ torch.ones(3, 2))
    assert (x + torch.tensor(2.0)).tolist() == [3, 3, 3]
    assert x[torch.tensor([0, 2])].tolist() == [1, 1]


@part
def promotion():
    half, number = torch.ones(2, dtype=torch.half, device="cuda"), torch.tensor(2.0)
    for value in (half * 2.5, half[0] * 2.5, half * number, half[0] * 3, half + True):
        assert value.dtype is torch.half
    whole = torch.ones(2, dtype=torch.int64, device="cuda")
    assert (whole * 2.5).dtype is torch.float32 and (whole * half).dtype is torch.half and (whole > 0.5).all()
    assert (whole % 2).dtype is torch.int64 and torch.trapz(half, dx=0.5).dtype is torch.half


@part
def results_given():
    x = torch.arange(6.0, device="cuda").view(2, 3)
    out = torch.empty(0, device="cuda")
    assert torch.add(x, x, out=out) is out and out.shape == (2, 3) and out.tolist() == (x * 2).tolist()
    columns = torch.zeros(4, 3, device="cuda")
    torch.mul(x, 2, out=columns[::2])
    assert columns[2].tolist() == [6, 8, 10] and columns[1].tolist() == [0, 0, 0]
    before = x.data_ptr()
    assert x.add_(1).data_ptr() == before and x.t().mul_(2)[0, 1].item() == x[1, 0].item() == 8


@part
def copies():
    x = torch.arange(12).view(3, 4)
    on = x.cuda(non_blocking=True)
    assert on.t().cpu().tolist() == x.t().tolist() and on.half().float().cpu().tolist() == x.tolist()
    pinned = x.pin_memory()
    assert pinned.is_pinned() and pinned.to("cuda", non_blocking=True).sum().item() == 66
    target = torch.zeros(4, 3, dtype=torch.int64)
    assert target.copy_(on.t()).tolist() == x.t().tolist() and on.numpy is not None
    buffer = io.BytesIO()
    torch.save({"x": on}, buffer)
    buffer.seek(0)
    assert torch.load(buffer)["x"].is_cuda


@part
def indices():
    both(lambda x: x[torch.tensor([2, 0], device=x.device)][:, x[0] > 0], torch.randn(4, 5))
    both(lambda x: x.gather(1, torch.zeros(4, 2, dtype=torch.int64, device=x.device)), torch.randn(4, 5))
    both(lambda x: x.scatter_add(1, torch.ones(4, 5, dtype=torch.int64, device=x.device), x * 2), torch.randn(4, 5))
    x = torch.zeros(5, device="cuda")
    x[torch.tensor([1, 3], device="cuda")] = 7
    assert x.tolist() == [0, 7, 0, 7, 0] and x.nonzero().flatten().tolist() == [1, 3]


@part
def shapes():
    both(lambda x: torch.cat([x, x * 2], 1).view(2, -1).permute(1, 0).contiguous().flip(0).roll(2), torch.randn(4, 6))
    both(lambda x: F.pad(x, (1, 2)).unfold(1, 3, 2).sum(-1), torch.randn(4, 6))
    both(lambda x: torch.einsum("ij,kj->ik", x, x).tril(), torch.randn(4, 6))


@part
def reductions():
    both(lambda x: x.softmax(-1).std(0) + x.logsumexp(0) + x.amax(0) + x.cumsum(0)[-1] + x.norm(dim=0), torch.randn(7, 5))
    both(lambda x: x.sort(dim=1)[0] + x.topk(3, 1)[0].sum() + x.median(), torch.randn(4, 6))


@part
def convolutions():
    for make, shape in [
        (lambda: nn.Conv1d(4, 6, 3, padding=1), (2, 4, 9)),
        (lambda: nn.Conv2d(4, 6, 3, stride=2, groups=2), (2, 4, 9, 8)),
        (lambda: nn.ConvTranspose2d(4, 6, 3), (2, 4, 5, 5)),
        (lambda: nn.Conv3d(2, 3, 2), (1, 2, 4, 4, 4)),
        (lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(2)), (2, 3, 9, 9)),
    ]:
        module(make, torch.randn(shape), tolerance=1e-3)


@part
def recurrent():
    for make in (nn.LSTM, nn.GRU, nn.RNN):
        module(lambda make=make: make(5, 7, num_layers=2, bidirectional=True), torch.randn(6, 3, 5), tolerance=1e-3)
    module(lambda: nn.LSTMCell(5, 7), torch.randn(3, 5))
    module(lambda: nn.GRUCell(5, 7), torch.randn(3, 5))


@part
def transformers():
    module(lambda: nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True), torch.randn(2, 5, 16), tolerance=1e-3)
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True).eval()
    x = torch.randn(2, 5, 16)
    with torch.no_grad():
        close(copy.deepcopy(layer).cuda()(x.cuda()), layer(x), 1e-3)


@part
def fused_attention():
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q, k, v = (torch.randn(2, 4, 16, 32) for _ in range(3))
    for dtype in (torch.half, torch.bfloat16):
        for kind in (SDPBackend.MATH, SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION):
            with sdpa_kernel(kind):
                ours = F.scaled_dot_product_attention(*(t.to("cuda", dtype) for t in (q, k, v)), is_causal=True)
            close(ours.float(), F.scaled_dot_product_attention(q, k, v, is_causal=True), 3e-2)


@part
def losses():
    target = torch.tensor([1, 0, 3])
    both(lambda x: F.cross_entropy(x, target.to(x.device), label_smoothing=0.1), torch.randn(3, 4))
    both(lambda x: F.ctc_loss(x.log_softmax(-1), torch.ones(2, 3, dtype=torch.long, device=x.device),
                              torch.tensor([6, 6]), torch.tensor([3, 2])), torch.randn(6, 2, 5))
    both(lambda x: F.binary_cross_entropy_with_logits(x, torch.ones_like(x)) + F.huber_loss(x, x * 2), torch.randn(3, 4))


@part
def embeddings():
    words = torch.tensor([[1, 2], [0, 3]])
    torch.manual_seed(0)
    table = torch.randn(5, 4)
    both(lambda t: F.embedding(words.to(t.device), t), table)
    both(lambda t: F.embedding_bag(words.to(t.device), t, mode="mean"), table)


@part
def optimizers():
    for make in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop, torch.optim.Adagrad):
        options = [{}, {"foreach": True}] + ([{"fused": True}] if make in (torch.optim.Adam, torch.optim.AdamW) else [])
        for option in options:
            results = []
            for device in ("cuda", "cpu"):
                torch.manual_seed(0)
                net = nn.Linear(4, 3).to(device)
                step = make(net.parameters(), lr=0.01, **(option if device == "cuda" else {}))
                for _ in range(3):
                    net(torch.ones(2, 4, device=device)).pow(2).sum().backward()
                    step.step()
                    step.zero_grad()
                results.append(net.weight.detach().cpu())
            close(*results, 1e-5)


@part
def mixed_precision():
    net, scaler = nn.Linear(8, 8).cuda(), torch.amp.GradScaler("cuda")
    step = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        with torch.autocast("cuda", dtype=torch.float16):
            out = net(torch.ones(4, 8, device="cuda"))
            assert out.dtype is torch.half
        scaler.scale(out.float().pow(2).mean()).backward()
        scaler.step(step)
        scaler.update()
        step.zero_grad()
    assert torch.isfinite(net.weight).all() and scaler.get_scale() > 0


@part
def small_floats():
    x = torch.randn(16, 32)
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        ours = x.cuda().to(dtype)
        assert ours.view(torch.uint8).cpu().equal(x.to(dtype).view(torch.uint8)) and ours.float().is_cuda


@part
def sparse():
    x = torch.randn(5, 6).relu()
    for to in (lambda t: t.to_sparse(), lambda t: t.to_sparse_csr()):
        close(to(x.cuda()) @ torch.ones(6, 2, device="cuda"), x @ torch.ones(6, 2))
        close(to(x.cuda()).to_dense(), x)
    pair = torch.sparse_coo_tensor([[0, 0], [1, 1]], [1.0, 2.0], (2, 3), device="cuda").coalesce()
    assert pair.values().tolist() == [3.0] and (pair + pair).to_dense()[0, 1].item() == 6


@part
def nested():
    parts = [torch.randn(2, 4), torch.randn(3, 4)]
    ours = torch.nested.nested_tensor([p.cuda() for p in parts], layout=torch.jagged)
    out = F.linear(ours, torch.ones(2, 4, device="cuda"))
    for a, b in zip(out.unbind(), parts):
        close(a, F.linear(b, torch.ones(2, 4)))
    close(ours.to_padded_tensor(0.0)[1], parts[1])
    strided = torch.nested.nested_tensor([p.cuda() for p in parts])
    close((strided * 2).to_padded_tensor(0.0)[1], parts[1] * 2)


@part
def fourier():
    both(lambda x: torch.fft.irfft(torch.fft.rfft(x) * 2).abs(), torch.randn(4, 16))
    both(lambda x: torch.stft(x, 8, window=torch.hann_window(8, device=x.device), return_complex=True).abs().sum(), torch.randn(64))


@part
def linear_algebra():
    square = torch.randn(4, 4)
    spd = square @ square.t() + 4 * torch.eye(4)
    both(lambda x: torch.linalg.solve(x, torch.ones(4, 1, device=x.device)), spd, tolerance=1e-3)
    both(lambda x: torch.linalg.cholesky(x) + x.inverse() + torch.linalg.det(x), spd, tolerance=1e-2)
    both(lambda x: torch.linalg.svdvals(x) + torch.linalg.eigvalsh(x), spd, tolerance=1e-3)
    both(lambda x: torch.linalg.lstsq(x, torch.ones(4, 2, device=x.device))[0], spd, tolerance=1e-3)


@part
def transforms():
    from torch.func import grad, jacrev, vmap

    x = torch.randn(3, 4)
    close(vmap(grad(lambda v: v.sin().sum()))(x.cuda()), x.cos())
    close(jacrev(lambda v: v**2)(x[0].cuda()), torch.diag(2 * x[0]))


@part
def foreach():
    lists = [[torch.ones(3, device=d) * i for i in (1, 2)] for d in ("cuda", "cpu")]
    for tensors in lists:
        torch._foreach_add_(tensors, 2.0)
        torch._foreach_mul_(tensors, tensors)
    assert [t.tolist() for t in lists[0]] == [t.tolist() for t in lists[1]]
    assert torch.nn.utils.clip_grad_norm_([nn.Parameter(torch.ones(2, device="cuda"))], 1.0) == 0


@part
def generators():
    torch.manual_seed(1)
    a, b = torch.rand(5, device="cuda"), torch.rand(5, device="cuda")
    torch.manual_seed(1)
    assert torch.rand(5, device="cuda").equal(a) and torch.rand(5, device="cuda").equal(b) and not a.equal(b)
    state, before = torch.cuda.get_rng_state(), torch.get_rng_state()
    c = F.dropout(torch.ones(50, device="cuda"))
    torch.cuda.set_rng_state(state)
    assert F.dropout(torch.ones(50, device="cuda")).equal(c) and torch.get_rng_state().equal(before)
    own = torch.Generator("cuda").manual_seed(5)
    d = torch.randn(4, generator=own, device="cuda")
    assert torch.randn(4, generator=own.manual_seed(5), device="cuda").equal(d)
    x = torch.ones(4, device="cuda")
    noise = torch.empty_like(x)
    assert torch.ops.aten.rrelu_with_noise(-x, noise, 0.1, 0.3, True, own).lt(0).all() and noise.gt(0).all()
    assert torch.bernoulli(x, generator=own).equal(x)
    assert torch.randperm(9, device="cuda").sort()[0].tolist() == list(range(9))


@part
def checkpoints():
    from torch.utils.checkpoint import checkpoint

    x = torch.randn(4, 4, device="cuda", requires_grad=True)
    out = checkpoint(lambda t: F.dropout(t.sin(), 0.5), x, use_reentrant=False)
    kept = out.detach() != 0
    out.sum().backward()
    assert (x.grad != 0).equal(kept)


@part
def streams():
    side, ready = torch.cuda.Stream(), torch.cuda.Event(enable_timing=True)
    x = torch.ones(1000, device="cuda")
    with torch.cuda.stream(side):
        y = x * 3
        ready.record()
    ready.wait()
    assert (y + x).sum().item() == 4000 and ready.query()
    torch.cuda.synchronize()


@part
def graphs():
    x, weight = torch.zeros(4, device="cuda"), torch.ones(4, 4, device="cuda")
    chosen = torch.tensor([1, 2], device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = (x @ weight + 1).relu()
        z = y[chosen].sum()
        x.add_(1)
        noise = torch.rand(3, device="cuda")
    assert x.tolist() == [0] * 4
    seen = []
    for turn in range(2):
        graph.replay()
        torch.cuda.synchronize()
        assert y.tolist() == [4 * turn + 1] * 4 and z.item() == 2 * (4 * turn + 1) and x.tolist() == [turn + 1] * 4
        seen.append(noise.clone())
    assert not seen[0].equal(seen[1])
    for depends_on_values in (lambda: x.sum().item(), x.nonzero):
        raises(RuntimeError, "capturing", lambda call=depends_on_values: captured(call))


def captured(call):
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        call()


@part
def wrong_indices():
    code = """
import torch
x = torch.ones(3, device="cuda")
try:
    x[torch.tensor([5], device="cuda")]
    torch.cuda.synchronize()
except RuntimeError as error:
    print("first", "device-side assert" in str(error))
try:
    x + 1
    torch.cuda.synchronize()
except RuntimeError as error:
    print("second", "device-side assert" in str(error))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert "first True\nsecond True" in done.stdout, done.stdout + done.stderr
    assert "error[assertion]" in done.stderr and "out of bounds" in done.stderr, done.stderr


@part
def wrong_dimensions():
    x = torch.ones(3, 2, device="cuda")
    raises(IndexError, "Dimension out of range", lambda: x.gather(5, torch.zeros(1, 1, dtype=torch.int64, device="cuda")))
    raises(IndexError, "Dimension out of range", lambda: x.index_select(5, torch.zeros(1, dtype=torch.int64, device="cuda")))
    assert (x + 1).sum().item() == 12


@part
def memory_out_of_reach():
    driver, module, address, size = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_size_t()
    text = b".version 7.0\n.target sm_50\n.address_size 64\n.visible .global .align 4 .f32 table[4];\n"
    torch.ones(1, device="cuda")
    assert driver.cuModuleLoadData(ctypes.byref(module), text) == 0
    assert driver.cuModuleGetGlobal_v2(ctypes.byref(address), ctypes.byref(size), module, b"table") == 0

    class Table:
        __cuda_array_interface__ = {"shape": (4,), "typestr": "<f4", "data": (address.value, False), "version": 3}

    table = torch.as_tensor(Table(), device="cuda")
    raises(NotImplementedError, "does not reach", lambda: table + 1)


@part
def refusals():
    raises(NotImplementedError, "_sparse_semi_structured_mm",
           lambda: torch.ops.aten._sparse_semi_structured_mm(*[torch.ones(32, 32, dtype=torch.half, device="cuda")] * 3))


@part
def modes():
    with torch.device("cuda"):
        assert (torch.ones(3) + 1).is_cuda
    with torch.inference_mode():
        assert (torch.ones(3, device="cuda") * 2).sum().item() == 6
    torch.set_default_dtype(torch.float64)
    try:
        assert (torch.ones(3, device="cuda") / 3).dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    x = torch.randn(3, 4, dtype=torch.complex64)
    close(x.cuda().conj().mT @ x.cuda(), x.conj().mT @ x)


@part
def processes():
    code = """
import sys, torch, torch.distributed as dist
dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=int(sys.argv[2]), world_size=2)
x = torch.full((3,), float(sys.argv[2]) + 1, device="cuda")
dist.all_reduce(x)
print(x.tolist())
"""
    with tempfile.TemporaryDirectory() as folder:
        ranks = [subprocess.Popen([sys.executable, "-c", code, f"{folder}/store", str(rank)], stdout=subprocess.PIPE, text=True)
                 for rank in range(2)]
        assert all("[3.0, 3.0, 3.0]" in rank.communicate(timeout=120)[0] for rank in ranks)


def compiled(function, *tensors, tolerance=1e-3, **options):
    tensors = [t.cuda() for t in tensors]
    expected = function(*tensors)
    torch.testing.assert_close(torch.compile(function, **options)(*tensors), expected, rtol=tolerance, atol=tolerance)


@part
def compile_operators():
    x = torch.randn(64, 128)
    compiled(lambda x: (x * 2 + 1).sin().exp(), x)
    compiled(lambda x: F.softmax(x, -1), x)
    compiled(lambda x: F.layer_norm(x, (128,)), x)
    compiled(lambda x: x.cumsum(1), x)
    compiled(lambda x: x.sort(1)[0], x)
    compiled(lambda x: x.argmax(1), x)
    compiled(lambda x: x[:, [3, 1]] * x.var(1, keepdim=True), x)
    compiled(lambda x: (x.half() * 3).relu(), x, tolerance=2e-2)
    compiled(lambda x: (x.bfloat16() * 3).sum(1), x, tolerance=5e-2)


@part
def compile_products():
    x, w = torch.randn(64, 128), torch.randn(128, 96)
    compiled(lambda x, w: (x @ w).relu(), x, w)
    compiled(lambda x, w: (x @ w).relu(), x, w, mode="max-autotune-no-cudagraphs")
    compiled(lambda x, w: (x @ w).relu(), x.half(), w.half(), tolerance=5e-2, mode="max-autotune-no-cudagraphs")
    compiled(lambda x, w: ((x @ w).relu() * 2).sum(1), x, w, mode="reduce-overhead")


@part
def compile_training():
    def train(wrap):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(32, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 10)).cuda()
        step, run = torch.optim.AdamW(net.parameters()), wrap(net)
        x, target, losses = torch.randn(8, 32).cuda(), torch.arange(8, device="cuda"), []
        for _ in range(4):
            loss = F.cross_entropy(run(x), target)
            loss.backward()
            step.step()
            step.zero_grad()
            losses.append(loss.item())
        return torch.tensor(losses)

    close(train(torch.compile), train(lambda net: net))


@part
def compile_attention():
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    q, k, v = (torch.randn(1, 2, 128, 64, device="cuda") for _ in range(3))
    mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, 128, 128, device="cuda")
    ours = torch.compile(flex_attention)(q, k, v, block_mask=mask)
    close(ours, F.scaled_dot_product_attention(q.cpu(), k.cpu(), v.cpu(), is_causal=True), 1e-2)


@part
def triton_kernels():
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write("import triton, triton.language as tl\n@triton.jit\ndef scale(x, n, B: tl.constexpr):\n"
                   "    i = tl.program_id(0) * B + tl.arange(0, B)\n    tl.store(x + i, tl.load(x + i, i < n) * 2, i < n)\n")
        file.flush()
        space = {}
        exec(compile(f"import importlib.util as u\ns = u.spec_from_file_location('k', {file.name!r})\n"
                     "m = u.module_from_spec(s)\ns.loader.exec_module(m)", "k", "exec"), space)
        x = torch.randn(1000, device="cuda")
        expected = (x * 2).cpu()
        space["m"].scale[(8,)](x, 1000, B=128)
        close(x, expected)


@part
def kernels_from_source():
    function = torch.cuda.jiterator._create_jit_fn("template <typename T> T f(T x, T y) { return x * y + 3; }")
    x = torch.arange(8.0, device="cuda")
    assert function(x, x).tolist() == [n * n + 3.0 for n in range(8)]


def add_in_place(tensors, event, answers, is_received):
    """What the other process of `several_processes` does."""
    for tensor in tensors:
        tensor += 1
    torch.cuda.Event.from_ipc_handle(torch.device("cuda"), event).synchronize()
    own = torch.arange(5.0, device="cuda")
    answers.put((own, tensors[0].sum().item()))
    is_received.wait(60)


@part
def several_processes():
    context = torch.multiprocessing.get_context("spawn")
    answers, is_received = context.SimpleQueue(), context.Event()
    storage = torch.zeros(1000, device="cuda")
    event = torch.cuda.Event(interprocess=True)
    event.record()
    # Two views of one storage, and a tensor of its own.
    tensors = [storage, storage[10:20], torch.ones(3, 3, dtype=torch.half, device="cuda")]
    other = context.Process(target=add_in_place, args=(tensors, event.ipc_handle(), answers, is_received))
    other.start()
    received, total = answers.get()
    assert received.is_cuda and received.tolist() == [0, 1, 2, 3, 4] and total == 1010
    is_received.set()
    other.join()
    assert other.exitcode == 0
    assert storage.sum() == 1010 and storage[10] == 2 and (tensors[2] == 2).all()


@part
def expandable_segments():
    program = ("import torch\nx = torch.arange(5_000_000, device='cuda')\ny = torch.zeros(3_000_000, device='cuda') + 1\n"
               "assert x.sum() == 12_499_997_500_000 and y.sum() == 3_000_000\ndel x\ntorch.cuda.empty_cache()\n"
               "z = torch.ones(9_000_000, device='cuda')\nassert z.sum() == 9_000_000\n")
    for name in ["PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"]:
        subprocess.run([sys.executable, "-c", program], env={**os.environ, name: "expandable_segments:True"}, check=True)


if __name__ == "__main__":
    torch.manual_seed(0)
    run()
