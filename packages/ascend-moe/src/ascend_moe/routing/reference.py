"""Routing in torch operators: the definition, and what runs where the vendor's operator does not fit."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F

from ascend_moe.routing.rule import Groups, GroupScore, Rule, Scoring


class Choice(NamedTuple):
    """The experts of every token.

    Attributes:
        weights: [tokens, top_k] float32.
        experts: [tokens, top_k] int32, of every row the best first.
    """

    weights: torch.Tensor
    experts: torch.Tensor


def route(rule: Rule, logits: torch.Tensor, bias: torch.Tensor | None = None) -> Choice:
    """Choose by score plus bias; weigh by score.

    Formulas: DeepSeek-V3 technical report (arXiv 2412.19437), equations 13 to 16, for sigmoid, groups and bias;
    DeepSeek-V2 (arXiv 2405.04434) for groups scored by their best expert.

    Args:
        rule: what to do.
        logits: [tokens, experts], any floating dtype.
        bias: [experts]; takes part in the choice of groups and experts, not in the weights.

    Raises:
        ValueError: the rule does not fit the number of experts.
    """
    rule.check(logits.shape[-1])
    scores = _scores(rule.scoring, logits)
    ranking = scores if bias is None else scores + bias.float()
    if rule.groups is not None:
        ranking = _keep_best_groups(ranking, rule.groups)
    return weigh(rule, scores, ranking.topk(rule.top_k, dim=-1).indices)


def route_by_table(rule: Rule, logits: torch.Tensor, token_ids: torch.Tensor, table: torch.Tensor) -> Choice:
    """Take each token's experts from a table by the token's number; weigh them by score.

    Args:
        rule: its groups are not used.
        logits: [tokens, experts].
        token_ids: [tokens], integers.
        table: [vocabulary, top_k], experts of every token of the vocabulary.

    Raises:
        ValueError: the table does not have ``top_k`` columns.
    """
    if table.shape[-1] != rule.top_k:
        raise ValueError(f"the table has {table.shape[-1]} experts a token, top_k is {rule.top_k}")
    return weigh(rule, _scores(rule.scoring, logits), table[token_ids.long()].long())


def weigh(rule: Rule, scores: torch.Tensor, experts: torch.Tensor) -> Choice:
    """The weights of chosen experts [tokens, top_k] (int64) from all scores [tokens, experts]."""
    weights = scores.gather(-1, experts)
    return Choice(finish(rule, weights), experts.int())


def finish(rule: Rule, weights: torch.Tensor) -> torch.Tensor:
    """Renormalise and scale scores [tokens, top_k] as the rule says."""
    if rule.renormalize:
        # Sigmoid scores of very negative logits are zero, all of them; DeepSeek adds the same constant.
        weights = weights / (weights.sum(-1, keepdim=True) + 1e-20)
    return weights if rule.scale == 1.0 else weights * rule.scale


def _scores(scoring: Scoring, logits: torch.Tensor) -> torch.Tensor:
    values = logits.float()
    match scoring:
        case Scoring.SOFTMAX:
            return values.softmax(-1)
        case Scoring.SIGMOID:
            return values.sigmoid()
        case Scoring.SQRT_SOFTPLUS:
            return F.softplus(values).sqrt()


def _keep_best_groups(ranking: torch.Tensor, groups: Groups) -> torch.Tensor:
    """``ranking`` [tokens, experts] with minus infinity for experts outside the best groups."""
    grouped = ranking.unflatten(-1, (groups.count, -1))
    quality = grouped.topk(1 if groups.score is GroupScore.MAX else 2, dim=-1).values.sum(-1)
    kept = torch.zeros_like(quality, dtype=torch.bool).scatter_(-1, quality.topk(groups.kept, dim=-1).indices, True)
    return grouped.masked_fill(~kept.unsqueeze(-1), float("-inf")).flatten(-2)
