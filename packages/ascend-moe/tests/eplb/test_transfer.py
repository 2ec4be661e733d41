"""Who sends what to whom."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from ascend_moe.eplb import plan
from ascend_moe.eplb.policies.random import RandomPolicy
from ascend_moe.eplb.transfer import (
    LayerTransfers,
    Transfer,
    first_replicas,
    move_weights,
    plan_transfers,
    transfers_of,
)


def test_an_exchange_is_two_transfers() -> None:
    before, after = np.array([[[0, 1], [2, 3]]]), np.array([[[3, 1], [2, 0]]])
    assert plan_transfers(before, after) == (LayerTransfers(0, (Transfer(3, 1, 1, 0, 0), Transfer(0, 0, 0, 1, 1))),)


def test_layers_that_stay_are_left_out_and_the_order_is_kept() -> None:
    before = np.array([[[0, 1], [2, 3]]] * 3)
    after = np.array([[[3, 1], [2, 0]], [[0, 1], [2, 3]], [[0, 2], [1, 3]]])
    assert [it.layer for it in plan_transfers(before, after, order=(2, 1, 0))] == [2, 0]


def test_further_replicas_get_what_the_first_one_has() -> None:
    placement = np.array([[0, 1, 2], [3, 0, 1], [4, 5, 0]])
    assert first_replicas(7, placement) == LayerTransfers(
        7, (Transfer(0, 0, 0, 1, 1), Transfer(1, 0, 1, 1, 2), Transfer(0, 0, 0, 2, 2))
    )


def test_sources_share_the_work() -> None:
    """Ranks 0 and 1 both hold experts 0 and 1; rank 2 needs both and takes one from each."""
    before, after = np.array([[[0, 1], [0, 1], [2, 3]]]), np.array([[[0, 2], [3, 1], [1, 0]]])
    sources = [it.source for it in plan_transfers(before, after)[0].receives(2)]
    assert sorted(sources) == [0, 1]


def test_a_source_that_another_expert_needs_is_left_to_it() -> None:
    """Expert 0 is on ranks 0 and 1, expert 1 on rank 0 alone; the first choice of both would be rank 0."""
    before, after = np.array([[[0, 1], [0, 2], [3, 4]]]), np.array([[[3, 4], [2, 0], [0, 1]]])
    sources = {it.expert: it.source for it in plan_transfers(before, after)[0].receives(2)}
    assert sources == {0: 1, 1: 0}


def test_a_source_of_the_same_node_is_preferred() -> None:
    before = np.array([[[0, 1], [2, 3], [0, 4], [5, 1]]])
    after = np.array([[[0, 1], [2, 3], [0, 4], [5, 0]]])
    assert [it.source for it in plan_transfers(before, after, nodes=2)[0].transfers] == [2]
    assert [it.source for it in plan_transfers(before, after, nodes=1)[0].transfers] == [0]


@pytest.mark.parametrize("form", ["stacked", "list"])
def test_weights_move_with_their_scales(form: str) -> None:
    """Experts 0 and 3 change places between two ranks; each token's result stays as it was."""
    before, after = np.array([[[0, 1], [2, 3]]]), np.array([[[3, 1], [2, 0]]])
    weights, scales = torch.arange(4.0) + 10, torch.tensor([1.0, 2, 3, 4])

    def held(placement: np.ndarray) -> list[dict]:
        made = [{"weight": weights[placement[0, rank]], "scale": scales[placement[0, rank]]} for rank in range(2)]
        return made if form == "stacked" else [{name: list(it) for name, it in one.items()} for one in made]

    tensors = held(before)
    move_weights(plan_transfers(before, after)[0], tensors)
    for rank in range(2):
        for slot, expert in enumerate(after[0, rank]):
            assert tensors[rank]["weight"][slot] * tensors[rank]["scale"][slot] == weights[expert] * scales[expert]


def test_a_rank_that_lacks_the_scales_is_named() -> None:
    with pytest.raises(ValueError, match=r"rank 1 has the tensors \['weight'\], rank 0 has \['scale', 'weight'\]"):
        move_weights(LayerTransfers(0, ()), [{"weight": [1], "scale": [1]}, {"weight": [1]}])


def test_transfers_lead_from_one_random_placement_to_the_next(draw_problem: Callable) -> None:
    problem = draw_problem((16, 8, 16), 6, seed=1, nodes=2)
    found = plan(RandomPolicy(seed=9), problem)
    layers = transfers_of(found, problem.placement, problem.nodes)
    assert tuple(it.layer for it in layers) == found.order
    assert sum(len(it.transfers) for it in layers) == found.statistics.moves.sum()
    for layer in layers:
        held = [{"weight": list(problem.placement[layer.layer, rank])} for rank in range(problem.ranks)]
        move_weights(layer, held)
        assert [it["weight"] for it in held] == found.placement[layer.layer].tolist()
