"""Maps from logical experts to slots, as arrays and as tensors."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ascend_moe.eplb import initial_placement
from ascend_moe.eplb.policies.default import DefaultPolicy
from ascend_moe.eplb.routing import local_slots, replicas, routing_table
from ascend_moe.eplb.tensors import rebalance

PLACEMENT = np.array([[[0, 1], [2, 0], [0, 2]]])


def test_local_slots() -> None:
    assert local_slots(PLACEMENT, 3).tolist() == [[[0, 1, -1], [1, -1, 0], [0, -1, 1]]]


def test_replicas() -> None:
    table, counts = replicas(PLACEMENT, 3)
    assert counts.tolist() == [[3, 1, 2]]
    assert table.tolist() == [[[0, 3, 4], [1, -1, -1], [2, 5, -1]]]


def test_routing_table_turns_with_token_rank_and_expert() -> None:
    """Row r of expert e holds replica (r + rank + e) mod replicas."""
    assert routing_table(PLACEMENT, 3, rank=1, rows=3)[0].tolist() == [[3, 1, 5], [4, 1, 2], [0, 1, 5]]


def test_every_row_routes_to_a_slot_that_holds_the_expert() -> None:
    placement = initial_placement(2, 128, 2, 2)
    table = routing_table(placement, 128, rank=1)
    assert table.shape == (2, 1024, 128)
    assert table.dtype == np.int32
    assert table.min() >= 0
    assert table.max() < 130
    flat = placement.reshape(2, -1)
    assert (np.take_along_axis(flat[:, None], table.astype(np.int64), axis=2) == np.arange(128)).all()


def test_tensors_in_three_maps_out() -> None:
    before = torch.from_numpy(initial_placement(2, 8, 4, 4).reshape(2, 12))
    loads = torch.tensor([[800, 10, 10, 10, 10, 10, 10, 10]] * 2, dtype=torch.int32)
    physical, logical, counts = rebalance(DefaultPolicy(), loads, before, ranks=4)
    assert [it.dtype for it in (physical, logical, counts)] == [torch.int64] * 3
    assert {it.device for it in (physical, logical, counts)} == {loads.device}
    assert physical.shape == (2, 12)
    assert counts[:, 0].tolist() == [4, 4]
    for expert in range(8):
        slots = logical[0, expert][: counts[0, expert]]
        assert (physical[0, slots] == expert).all()


def test_tensors_that_do_not_divide_are_refused() -> None:
    with pytest.raises(ValueError, match="261 physical experts do not divide evenly among 8 ranks"):
        rebalance(DefaultPolicy(), torch.ones(1, 256), torch.arange(261)[None] % 256, ranks=8)
