"""Mixture of experts: routing, rows in the order of experts and back, products of experts."""

from __future__ import annotations

from collections.abc import Iterator

import torch

import ascend_kernels
from run_gpu.case import Case


def cases() -> Iterator[Case]:
    tokens, experts, k, hidden, intermediate = 16384, 128, 8, 2048, 768
    logits = torch.randn(tokens, experts, device="cuda")

    def route(logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        weights, ids = torch.softmax(logits, -1).topk(k, -1)
        return weights / weights.sum(-1, keepdim=True), ids

    compiled = torch.compile(route)
    yield Case(
        f"topk_routing {tokens}x{experts} k{k}",
        lambda: ascend_kernels.topk_routing(logits, k, renormalise=True),
        lambda: route(logits[:512].double()),
        "reduction",
        logits.nbytes + tokens * k * 8,
        {"torch.compile": lambda: compiled(logits)},
        rows=512,
    )
    weights, ids = ascend_kernels.topk_routing(logits, k, renormalise=True)
    positions, _, offsets = ascend_kernels.expert_positions(ids, experts)
    yield Case(
        f"expert_positions {tokens}x{k} E{experts}",
        lambda: ascend_kernels.expert_positions(ids, experts)[1:],
        lambda: (torch.bincount(ids.flatten(), minlength=experts), offsets),
        "exact",
        ids.nbytes + positions.nbytes,
        {"torch.sort": lambda: ids.flatten().sort(stable=True)},
    )
    x = torch.randn(tokens, hidden, device="cuda", dtype=torch.bfloat16)
    order = ids.flatten().sort(stable=True).indices // k
    yield Case(
        f"moe_permute {tokens}x{hidden} k{k}",
        lambda: ascend_kernels.moe_permute(x, positions),
        lambda: x[order],
        "exact",
        x.nbytes * (1 + k),
        {"torch index": lambda: x[order]},
    )
    rows = ascend_kernels.moe_permute(x, positions)

    def combine(rows: torch.Tensor, positions: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        return (rows[positions] * weights[..., None]).sum(1)

    combined = torch.compile(lambda rows, p, w: combine(rows, p, w).to(rows.dtype))
    yield Case(
        f"moe_unpermute {tokens}x{hidden} k{k}",
        lambda: ascend_kernels.moe_unpermute(rows, positions, weights),
        lambda: combine(rows.double(), positions[:512], weights[:512].double()),
        "reduction",
        x.nbytes * (1 + k),
        {"torch.compile": lambda: combined(rows, positions, weights)},
        rows=512,
    )
    weight = torch.randn(experts, hidden, 2 * intermediate, device="cuda", dtype=torch.bfloat16) / hidden**0.5
    bounds = offsets.tolist()
    first = bounds[1]
    yield Case(
        f"grouped_matmul {tokens * k}x{hidden}x{2 * intermediate} E{experts} bf16",
        lambda: ascend_kernels.grouped_matmul(rows, weight, offsets),
        lambda: rows[:first].double() @ weight[0].double(),
        "matmul",
        0,
        {"torch grouped_mm": lambda: torch._grouped_mm(rows, weight, offs=offsets[1:])},
        rows=first,
    )
