"""Routing by turns."""

import pytest
import torch

from ascend_moe.routing import route_evenly


@pytest.mark.parametrize(("tokens", "experts", "top_k"), [(4, 128, 8), (33, 128, 8), (5, 3, 2), (7, 4, 4), (0, 8, 2)])
def test_every_expert_gets_its_share(tokens: int, experts: int, top_k: int) -> None:
    # va#8501: of 128 experts with 2 replicas, a number up to 129 came out, which is no logical expert.
    weights, chosen = route_evenly(tokens, experts, top_k, "npu")
    counts = torch.bincount(chosen.flatten().cpu(), minlength=experts)
    assert len(counts) == experts
    assert counts.max() - counts.min() <= 1
    assert all(len(set(row)) == top_k for row in chosen.tolist())
    torch.testing.assert_close(weights.sum(-1).cpu(), torch.ones(tokens))


def test_more_than_there_are() -> None:
    with pytest.raises(ValueError, match="top_k is 5, but there are only 4 experts"):
        route_evenly(3, 4, 5, "cpu")
