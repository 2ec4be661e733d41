"""Operators on logits."""

from __future__ import annotations

from collections.abc import Iterator

import torch

import ascend_kernels
from run_gpu.case import Case

VOCAB = 151936


def cases() -> Iterator[Case]:
    rows = 1024
    logits = torch.randn(rows, VOCAB, device="cuda") * 3
    yield Case(
        f"probabilities {rows}x{VOCAB}",
        lambda: ascend_kernels.probabilities(logits),
        lambda: logits[:64].double().softmax(-1),
        "reduction",
        2 * logits.nbytes,
        {"torch softmax": lambda: logits.softmax(-1)},
        rows=64,
    )
    ids = torch.randint(VOCAB, (rows, 6), device="cuda")
    yield Case(
        f"token_logprobs {rows}x{VOCAB}, 6 tokens",
        lambda: ascend_kernels.token_logprobs(logits, ids)[0],
        lambda: logits[:64].double().log_softmax(-1).gather(1, ids[:64]),
        "reduction",
        logits.nbytes,
        {"torch logsumexp, gather, count": lambda: ranked(logits, ids)},
        rows=64,
    )
    temperature = torch.full((rows,), 0.7, device="cuda")
    seeds, positions = torch.arange(rows, device="cuda"), torch.arange(rows, device="cuda")
    sharp = logits.clone()
    sharp[:, 77] = 1e4  # whatever the noise, this token wins
    yield Case(
        f"gumbel_argmax {rows}x{VOCAB}",
        lambda: ascend_kernels.gumbel_argmax(sharp, temperature, seeds, positions),
        lambda: torch.full((64,), 77, device="cuda"),
        "exact",
        logits.nbytes,
        {"torch softmax, exponential, argmax": lambda: raced(sharp, temperature)},
        rows=64,
    )
    for label, count, scale in (("kp", 256, 3.0), ("k", 256, 3.0), ("p", 256, 3.0), ("p flat", 64, 0.5)):
        logits = torch.randn(count, VOCAB, device="cuda") * scale
        k = torch.full((count,), 50, device="cuda", dtype=torch.int32) if "k" in label else None
        p = torch.full((count,), 0.9, device="cuda") if "p" in label else None
        work = torch.empty_like(logits)

        # A token whose mass in front is p but for rounding may go: of limits by mass alone the share is compared.
        whole = VOCAB if k is None else 1

        def truncated(x=logits, k=k, p=p, whole=whole):
            copy = x[:16].clone()
            ascend_kernels.top_k_top_p(copy, None if k is None else k[:16], None if p is None else p[:16])
            return copy.isneginf().sum(1).float() / whole

        yield Case(
            f"copy and top_k_top_p {label} {count}x{VOCAB}",
            truncated,
            lambda x=logits, k=k, p=p, whole=whole: sorted_limits(x[:16].double(), k, p).isneginf().sum(1) / whole,
            "reduction",
            4 * logits.nbytes,
            {"torch sort": lambda x=logits, k=k, p=p: sorted_limits(x, k, p)},
            timed=lambda x=logits, y=work, k=k, p=p: ascend_kernels.top_k_top_p(y.copy_(x), k, p),
        )


def sorted_limits(logits: torch.Tensor, k: torch.Tensor | None, p: torch.Tensor | None) -> torch.Tensor:
    values, order = logits.sort(descending=True)
    rows = len(logits)
    if k is not None:
        values = values.masked_fill(values < values.gather(1, k[:rows, None].long() - 1), float("-inf"))
    if p is not None:
        mass = values.softmax(-1)
        values = values.masked_fill(mass.cumsum(-1) - mass >= p[:rows, None], float("-inf"))
    return torch.empty_like(values).scatter_(1, order, values)


def ranked(logits: torch.Tensor, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    chosen = logits.gather(1, ids)
    return chosen - logits.logsumexp(1, keepdim=True), (logits >= chosen[:, :1]).sum(1)


def raced(logits: torch.Tensor, temperature: torch.Tensor) -> torch.Tensor:
    chances = (logits / temperature[:, None]).softmax(-1)
    return (chances / torch.empty_like(chances).exponential_()).argmax(-1)
