"""Verification of drafts."""

from __future__ import annotations

from collections.abc import Iterator

import torch

import ascend_kernels
from ascend_kernels.ops.sampling.noise.naive import exponential
from run_gpu.case import Case

VOCAB = 151936


def residual_argmax(target: torch.Tensor, draft: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
    return ((target - draft).clamp(min=0) / noise).argmax(-1)


def cases() -> Iterator[Case]:
    rows = 1024
    target = torch.randn(rows, VOCAB, device="cuda").softmax(-1)
    draft = torch.randn(rows, VOCAB, device="cuda").softmax(-1)
    ids, temperature = torch.zeros(rows, device="cuda", dtype=torch.int64), torch.ones(rows, device="cuda")
    integers = torch.arange(rows, device="cuda")
    noise = torch.empty_like(target).exponential_()
    first = exponential(integers[:16, None], integers[:16, None], torch.arange(VOCAB, device="cuda"))
    yield Case(
        f"recovered_tokens {rows}x{VOCAB}",
        lambda: ascend_kernels.recovered_tokens(target, draft, ids, temperature, integers, integers, integers),
        lambda: residual_argmax(target[:16].double(), draft[:16].double(), first.double()),
        "exact",
        2 * target.nbytes,
        {"torch residual argmax": lambda: residual_argmax(target, draft, noise)},
        rows=16,
    )
    yield Case(
        f"entropy {rows}x{VOCAB}",
        lambda: ascend_kernels.entropy(target),
        lambda: -(target[:64].double() * (target[:64].double() + 1e-10).log()).sum(-1),
        "reduction",
        target.nbytes,
        {"torch": lambda: -(target * (target + 1e-10).log()).sum(-1)},
        rows=64,
    )
