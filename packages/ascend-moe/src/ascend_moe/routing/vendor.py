"""Routing by the vendor's fused operator ``npu_moe_gating_top_k``.

Limits are those of its page in torch_npu 2.13.0: softmax and sigmoid; at most 2048 experts; groups of more than two
experts, whose sizes, rounded up to 32, add up to at most 2048; ``renorm`` 0 only, where sigmoid scores are divided by
their sum and softmax scores are not.
"""

from __future__ import annotations

import torch

from ascend_moe.routing.reference import Choice, finish
from ascend_moe.routing.rule import GroupScore, Rule, Scoring

MOST_EXPERTS = 2048
_ALIGNED = 32


def fits(rule: Rule, experts: int) -> bool:
    """Whether the operator can follow ``rule`` for this number of experts."""
    if experts > MOST_EXPERTS or not (
        rule.scoring is Scoring.SOFTMAX or (rule.scoring is Scoring.SIGMOID and rule.renormalize)
    ):
        return False
    if rule.groups is None:
        return True
    size = experts // rule.groups.count
    return size > 2 and -(-size // _ALIGNED) * _ALIGNED * rule.groups.count <= MOST_EXPERTS


def route(rule: Rule, logits: torch.Tensor, bias: torch.Tensor | None = None) -> Choice:
    """As :func:`ascend_moe.routing.reference.route`, for rules that :func:`fits` accepts; ``logits`` on an NPU."""
    rule.check(logits.shape[-1])
    softmax, groups = rule.scoring is Scoring.SOFTMAX, rule.groups
    weights, experts, _ = torch.ops.npu.npu_moe_gating_top_k(
        logits.float(),  # the weights come in the logits' dtype
        rule.top_k,
        bias=None if bias is None else bias.float(),
        k_group=groups.kept if groups else 1,
        group_count=groups.count if groups else 1,
        group_select_mode=int(groups is not None and groups.score is GroupScore.TOP2_SUM),
        norm_type=0 if softmax else 1,
        routed_scaling_factor=1.0 if softmax else rule.scale,
    )
    return Choice(finish(rule, weights) if softmax else weights, experts)
