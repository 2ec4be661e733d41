"""vLLM's routers, read as rules."""

from __future__ import annotations

from typing import NamedTuple

import torch
from vllm.model_executor.layers.fused_moe.router.base_router import BaseRouter
from vllm.model_executor.layers.fused_moe.router.fused_moe_router import FusedMoERouter
from vllm.model_executor.layers.fused_moe.router.fused_topk_bias_router import FusedTopKBiasRouter
from vllm.model_executor.layers.fused_moe.router.fused_topk_router import FusedTopKRouter
from vllm.model_executor.layers.fused_moe.router.grouped_topk_router import GroupedTopKRouter

from ascend_moe.routing import Groups, GroupScore, Rule, Scoring


class Ruling(NamedTuple):
    """A rule and the tensors it works with.

    Attributes:
        bias: [experts], corrects the choice; None without.
        table: [vocabulary, top_k], the experts of every token of the vocabulary; None without.
    """

    rule: Rule
    bias: torch.Tensor | None
    table: torch.Tensor | None


def ruling_of(router: FusedMoERouter, experts: int) -> Ruling | None:
    """The rule of one of vLLM's routers for this number of logical experts; None for one that has its own function."""
    match router:
        case GroupedTopKRouter():
            bias = router.e_score_correction_bias
            score = GroupScore.MAX if bias is None else GroupScore.TOP2_SUM
            # vLLM leaves groups away where they do not divide the experts.
            divides = experts > router.num_expert_group and experts % router.num_expert_group == 0
            groups = Groups(router.num_expert_group, router.topk_group, score) if divides else None
            return Ruling(_rule(router, router.routed_scaling_factor, groups), bias, None)
        case FusedTopKBiasRouter():
            rule = _rule(router, router.routed_scaling_factor, None)
            return Ruling(rule, router.e_score_correction_bias, router._hash_indices_table)
        case FusedTopKRouter():
            return Ruling(_rule(router, 1.0, None), None, None)
    return None


def _rule(router: BaseRouter, scale: float, groups: Groups | None) -> Rule:
    return Rule(router.top_k, Scoring(router.scoring_func), bool(router.renormalize), float(scale), groups)
