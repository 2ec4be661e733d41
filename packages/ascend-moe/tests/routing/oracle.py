"""Routing one token at a time in float64, with Python's lists: nothing of the code under test."""

import math
from collections.abc import Sequence


def scores_of(scoring: str, logits: Sequence[float]) -> list[float]:
    if scoring == "softmax":
        top = max(logits)
        powers = [math.exp(it - top) for it in logits]
        return [it / sum(powers) for it in powers]
    if scoring == "sigmoid":
        return [1 / (1 + math.exp(-it)) for it in logits]
    return [math.sqrt(math.log1p(math.exp(it))) for it in logits]


def route_token(
    logits: Sequence[float],
    scoring: str,
    top_k: int,
    *,
    renormalize: bool,
    scale: float = 1.0,
    groups: tuple[int, int, str] | None = None,
    bias: Sequence[float] | None = None,
) -> tuple[list[float], list[int]]:
    """Weights and experts, the best first; `groups` is (count, kept, "max" or "top2_sum")."""
    scores = scores_of(scoring, logits)
    ranking = [score + offset for score, offset in zip(scores, bias or [0.0] * len(scores), strict=True)]
    allowed = set(range(len(scores)))
    if groups is not None:
        count, kept, kind = groups
        size = len(scores) // count
        members = [range(group * size, (group + 1) * size) for group in range(count)]
        best = [sorted((ranking[it] for it in group), reverse=True) for group in members]
        quality = [it[0] if kind == "max" else it[0] + it[1] for it in best]
        keep = sorted(range(count), key=lambda group: -quality[group])[:kept]
        allowed = {expert for group in keep for expert in members[group]}
    experts = sorted(allowed, key=lambda expert: -ranking[expert])[:top_k]
    weights = [scores[expert] for expert in experts]
    if renormalize:
        weights = [it / sum(weights) for it in weights]
    return [it * scale for it in weights], experts
