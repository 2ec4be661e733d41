"""Low-rank adapters, and masks of grammars."""

from __future__ import annotations

from collections.abc import Iterator

import torch

import ascend_kernels
from run_gpu.case import Case


def cases() -> Iterator[Case]:
    tokens, hidden, rank = 256, 4096, 16
    x = torch.randn(tokens, hidden, device="cuda", dtype=torch.bfloat16)
    a = torch.randn(8, rank, hidden, device="cuda", dtype=torch.bfloat16) / hidden**0.5
    adapters = torch.arange(tokens, device="cuda") % 8

    def shrink(x: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
        return torch.einsum("trh,th->tr", a[adapters], x)

    compiled = torch.compile(shrink)
    yield Case(
        f"lora_shrink {tokens}x{hidden} r{rank}",
        lambda: ascend_kernels.lora_shrink(x, a, adapters),
        lambda: shrink(x.double(), a.double()),
        "reduction",
        0,
        {"torch.compile": lambda: compiled(x, a)},
    )
    logits, words = torch.randn(256, 151936, device="cuda"), 151936 // 32
    bitmask = torch.randint(-(2**31), 2**31 - 1, (256, words), device="cuda", dtype=torch.int32)
    bits = torch.arange(32, device="cuda", dtype=torch.int32)

    def masked(logits: torch.Tensor) -> torch.Tensor:
        allowed = ((bitmask[..., None] >> bits) & 1).flatten(-2).bool()
        return logits.masked_fill(~allowed, float("-inf"))

    def ours() -> torch.Tensor:
        copy = logits.clone()
        ascend_kernels.grammar_bitmask(copy, bitmask)
        return copy.exp()

    together = torch.compile(masked)
    yield Case(
        "grammar_bitmask 256x151936 fp32",
        ours,
        lambda: masked(logits.double()).exp(),
        "elementwise",
        2 * logits.nbytes + bitmask.nbytes,
        {"torch.compile": lambda: together(logits)},
        timed=lambda: ascend_kernels.grammar_bitmask(logits, bitmask),
    )
