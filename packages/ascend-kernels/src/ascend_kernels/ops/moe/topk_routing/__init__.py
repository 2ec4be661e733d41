"""The experts of every token and their weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.moe.topk_routing.calls import calls
from ascend_kernels.ops.moe.topk_routing.naive import topk_routing_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.moe.topk_routing.triton import topk_routing_triton

    return topk_routing_triton


def _fake(logits: torch.Tensor, k: int, *_: object) -> tuple[torch.Tensor, torch.Tensor]:
    shape = (logits.shape[0], k)
    return logits.new_empty(shape, dtype=torch.float32), logits.new_empty(shape, dtype=torch.int32)


_operator = register(
    "topk_routing(Tensor logits, int k, bool sigmoid, Tensor? bias, int groups, int top_groups, bool renormalise, "
    "float scale) -> (Tensor, Tensor)",
    naive=topk_routing_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def topk_routing(
    logits: torch.Tensor,
    k: int,
    *,
    sigmoid: bool = False,
    bias: torch.Tensor | None = None,
    groups: int = 1,
    top_groups: int = 1,
    renormalise: bool = False,
    scale: float = 1.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Choose ``k`` experts for every token (DeepSeek-V3, arXiv 2412.19437, section 2.1.2, for groups and bias).

    Scores are the softmax or the sigmoid of the logits. Experts are chosen by score plus bias and weigh as much as
    their score without it. With groups, ``top_groups`` groups are chosen first: by their best expert, or with a bias
    by the sum of their best two. Of equal numbers the first wins.

    Args:
        logits: fp16, bf16 or fp32 ``[tokens, experts]``, rows strided at will.
        k: experts per token.
        sigmoid: how scores are made.
        bias: ``[experts]``, or None.
        groups: of neighbouring experts.
        top_groups: groups from which experts are chosen; ``groups`` is all.
        renormalise: divide a token's weights by their sum.
        scale: multiplies the weights at the end.

    Returns:
        fp32 weights and int32 expert numbers, each ``[tokens, k]``, the best first.

    Raises:
        ValueError: numbers that do not go together.
    """
    experts = logits.shape[-1]
    if logits.dim() != 2 or groups < 1 or experts == 0 or experts % groups or not 1 <= top_groups <= groups:
        raise ValueError(
            f"topk_routing: logits of shape {tuple(logits.shape)}, {groups} groups, {top_groups} of them chosen: "
            "[tokens, experts], groups that divide the experts, and 1 to all of them go"
        )
    if not 1 <= k <= experts // groups * top_groups:
        raise ValueError(
            f"topk_routing: {k} experts of {experts // groups * top_groups} that {top_groups} of {groups} groups hold"
        )
    if bias is not None and bias.shape != (experts,):
        raise ValueError(f"topk_routing: bias of shape {tuple(bias.shape)} and {experts} experts")
    if logits.stride(1) != 1:
        logits = logits.contiguous()
    return _operator(logits, k, sigmoid, bias, groups, top_groups, renormalise, scale)
