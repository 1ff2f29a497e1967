"""What projects build on PyTorch: kernels of Liger, a small Llama of transformers, an extension of one's own. Against the CPU.

Each is a part (`parts.py`).
"""

import copy
import os
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from parts import part, run

def close(ours, theirs, tolerance=2e-4):
    torch.testing.assert_close(ours.detach().cpu().float(), theirs.detach().cpu().float(), rtol=tolerance, atol=tolerance)


def both(ours, theirs, *inputs, tolerance=2e-4):
    """A function on CUDA tensors and one on CPU tensors have the same results and gradients."""
    theirs_in = [x.clone().requires_grad_(x.is_floating_point()) for x in inputs]
    ours_in = [x.cuda().requires_grad_(x.is_floating_point()) for x in inputs]
    expected, result = theirs(*theirs_in), ours(*ours_in)
    close(result, expected, tolerance)
    expected.sum().backward()
    result.sum().backward()
    for a, b in zip(ours_in, theirs_in):
        if b.requires_grad:
            close(a.grad, b.grad, tolerance)


@part
def liger_rms_norm():
    from liger_kernel.transformers import LigerRMSNorm

    norm = LigerRMSNorm(96).cuda()
    both(norm, lambda x: F.rms_norm(x, (96,), eps=1e-6), torch.randn(6, 7, 96))


@part
def liger_layer_norm():
    from liger_kernel.transformers import LigerLayerNorm

    norm = LigerLayerNorm(96, eps=1e-6).cuda()
    both(norm, lambda x: F.layer_norm(x, (96,), eps=1e-6), torch.randn(6, 7, 96))


@part
def liger_swiglu():
    from liger_kernel.ops import LigerSiLUMulFunction

    both(LigerSiLUMulFunction.apply, lambda a, b: F.silu(a) * b, torch.randn(5, 130), torch.randn(5, 130))


@part
def liger_geglu():
    from liger_kernel.ops import LigerGELUMulFunction

    both(LigerGELUMulFunction.apply, lambda a, b: F.gelu(a, approximate="tanh") * b, torch.randn(5, 130), torch.randn(5, 130))


@part
def liger_rope():
    from liger_kernel.transformers import liger_rotary_pos_emb

    def rotate(x, cos, sin):
        half = x.shape[-1] // 2
        return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin

    angles = torch.arange(10.0)[:, None] * (10000 ** (-torch.arange(16.0) / 16))
    cos, sin = (torch.cat([f(angles)] * 2, -1)[None] for f in (torch.cos, torch.sin))
    q, k = torch.randn(2, 4, 10, 32), torch.randn(2, 2, 10, 32)
    ours = liger_rotary_pos_emb(q.cuda(), k.cuda(), cos.cuda(), sin.cuda())
    for result, x in zip(ours, (q, k)):
        close(result, rotate(x, cos, sin))


@part
def liger_cross_entropy():
    from liger_kernel.transformers import LigerCrossEntropyLoss

    target = torch.randint(0, 300, (20,))
    both(lambda x: LigerCrossEntropyLoss()(x, target.cuda()), lambda x: F.cross_entropy(x, target), torch.randn(20, 300))


@part
def liger_fused_linear_cross_entropy():
    from liger_kernel.transformers import LigerFusedLinearCrossEntropyLoss

    target = torch.randint(0, 300, (20,))
    ours = LigerFusedLinearCrossEntropyLoss()
    both(lambda w, x: ours(w, x, target.cuda()), lambda w, x: F.cross_entropy(x @ w.T, target), torch.randn(300, 64), torch.randn(20, 64), tolerance=2e-3)


@part
def liger_kl_divergence():
    from liger_kernel.transformers import LigerKLDIVLoss

    target = torch.randn(9, 200).softmax(-1)
    loss = torch.nn.KLDivLoss(reduction="batchmean")
    both(lambda x: LigerKLDIVLoss(reduction="batchmean")(x.log_softmax(-1), target.cuda()), lambda x: loss(x.log_softmax(-1), target), torch.randn(9, 200))


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(1)
    size = {"hidden_size": 64, "intermediate_size": 128, "vocab_size": 200, "num_hidden_layers": 2}
    config = LlamaConfig(**size, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64)
    cpu = LlamaForCausalLM(config)
    return cpu, copy.deepcopy(cpu).cuda(), torch.randint(3, 200, (2, 12))


@part
def llama_forward_and_backward():
    cpu, cuda, tokens = llama()
    expected, result = cpu(tokens, labels=tokens), cuda(tokens.cuda(), labels=tokens.cuda())
    close(result.logits, expected.logits)
    close(result.loss, expected.loss)
    expected.loss.backward()
    result.loss.backward()
    for (name, a), b in zip(cuda.named_parameters(), cpu.parameters()):
        assert a.grad is not None, name
        close(a.grad, b.grad)


@part
def llama_generates():
    cpu, cuda, tokens = llama()
    options = {"max_new_tokens": 10, "do_sample": False, "pad_token_id": 0}
    assert cuda.generate(tokens.cuda(), **options).tolist() == cpu.generate(tokens, **options).tolist()


@part
def llama_compiled():
    cpu, cuda, tokens = llama()
    with torch.no_grad():
        close(torch.compile(cuda)(tokens.cuda()).logits, cpu(tokens).logits, 1e-3)


@part
def bert():
    from transformers import BertConfig, BertModel

    torch.manual_seed(1)
    size = {"hidden_size": 64, "intermediate_size": 128, "vocab_size": 200, "num_hidden_layers": 2}
    cpu = BertModel(BertConfig(**size, num_attention_heads=4)).eval()
    tokens = torch.randint(3, 200, (2, 12))
    close(copy.deepcopy(cpu).cuda()(tokens.cuda()).pooler_output, cpu(tokens).pooler_output)


@part
def llama_with_liger():
    from liger_kernel.transformers import apply_liger_kernel_to_llama

    cpu, cuda, tokens = llama()
    expected = cpu(tokens).logits
    # It changes the class of all such models, too.
    apply_liger_kernel_to_llama(model=cuda)
    close(cuda(tokens.cuda()).logits, expected, 1e-3)


def toolkit():
    """A folder as CUDA_HOME, of the packages beside PyTorch; none where there is no nvcc."""
    packages = Path(torch.__file__).parents[1] / "nvidia/cu13"
    if not (packages / "bin/nvcc").exists():
        return None
    home = Path("cuda").absolute()
    (home / "lib64").mkdir(parents=True, exist_ok=True)
    for name in ["bin", "include", "nvvm"]:
        (home / name).unlink(missing_ok=True)
        (home / name).symlink_to(packages / name)
    for library in (packages / "lib").iterdir():
        for name in {library.name, library.name.split(".so")[0] + ".so"}:
            (home / "lib64" / name).unlink(missing_ok=True)
            (home / "lib64" / name).symlink_to(library)
    return home


SOURCE = r"""
#include <torch/extension.h>
__global__ void triple(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 3 * x[i] + 1;
}
torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty_like(x);
    triple<<<(x.numel() + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    return y;
}
"""


@part
def extension_of_ones_own():
    home = toolkit()
    if home is None:
        return "no nvcc in the registry for this release of CUDA"
    os.environ.update(CUDA_HOME=str(home), TORCH_CUDA_ARCH_LIST="9.0+PTX", TORCH_EXTENSIONS_DIR=str(Path("extensions").absolute()))
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    from torch.utils import cpp_extension

    module = cpp_extension.load_inline("triple", "torch::Tensor run(torch::Tensor x);", SOURCE, functions=["run"], extra_cuda_cflags=["-O2"])
    x = torch.randn(1000, device="cuda")
    close(module.run(x), 3 * x + 1)


if __name__ == "__main__":
    torch.manual_seed(0)
    run()
