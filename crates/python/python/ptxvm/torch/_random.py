"""Random numbers: a CPU generator for each call, seeded by the seed and the offset of the CUDA generator.

So the states that programs see, save and restore are those of the CUDA generator, and a recomputed dropout drops the same
elements.
"""

import threading

import torch

#: By how much a call advances a generator: PyTorch wants a multiple of 4.
_STEP = 4
_local = threading.local()


def _mix(seed, offset):
    """A seed of 64 bits (the finaliser of SplitMix64)."""
    word = (seed + offset * 0x9E3779B97F4A7C15) & 0xFFFF_FFFF_FFFF_FFFF
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFF_FFFF_FFFF_FFFF
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & 0xFFFF_FFFF_FFFF_FFFF
    return word ^ (word >> 31)


def _cuda_generator(generator, device):
    return torch.cuda.default_generators[device] if generator is None else generator


def _advance(generator, device):
    """The seed for one call, after which the CUDA generator is at its next state."""
    generator = _cuda_generator(generator, device)
    offset = generator.get_offset()
    generator.set_offset(offset + _STEP)
    return _mix(generator.initial_seed(), offset)


def host_generator(generator, device):
    """A CPU generator in place of a CUDA generator, or of the default one of the device."""
    host = getattr(_local, "generator", None)
    if host is None:
        host = _local.generator = torch.Generator()
    return host.manual_seed(_advance(generator, device))


class DefaultGenerator:
    """While this context lasts, CPU kernels without a generator of their own draw from a CUDA generator."""

    def __init__(self, device):
        self.device = device

    def __enter__(self):
        self.saved = torch.default_generator.get_state()
        torch.default_generator.manual_seed(_advance(None, self.device))

    def __exit__(self, *_):
        torch.default_generator.set_state(self.saved)
