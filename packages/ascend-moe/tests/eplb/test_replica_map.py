"""Maps on the device."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ascend_moe.eplb.replica_map import ReplicaMap

# Logical experts 0 to 3 on two ranks of three slots; 0 and 1 have two replicas each.
FIRST = np.array([[0, 1, 2], [1, 3, 0]])
SECOND = np.array([[3, 1, 2], [2, 3, 0]])


def test_replicas_take_turns_and_ranks_start_at_different_ones() -> None:
    logical = torch.tensor([[0, 2]] * 4, dtype=torch.int32).npu()
    for rank in (0, 1):
        physical = ReplicaMap(FIRST, 4, rank, "npu").to_physical(logical)
        assert physical.dtype == torch.int32
        # Token t of rank r uses replica (t + r + expert) mod the number of them: slots 0 and 5 of expert 0.
        assert physical.tolist() == [[(0, 5)[(token + rank) % 2], 2] for token in range(4)]


def test_more_tokens_than_rows_of_the_table() -> None:
    logical = torch.zeros(2049, 1, dtype=torch.int32).npu()
    counts = torch.bincount(ReplicaMap(FIRST, 4, 0, "npu").to_physical(logical).flatten().cpu(), minlength=6)
    assert counts.tolist() == [1025, 0, 0, 0, 0, 1024]


def test_choices_are_counted_until_they_are_asked_for() -> None:
    replicas = ReplicaMap(FIRST, 4, 0, "npu")
    for _ in range(2):
        replicas.record(torch.tensor([[0, 4], [4, 2]], dtype=torch.int32).npu())
    assert replicas.counts().tolist() == [[2, 0, 2], [0, 4, 0]]
    assert replicas.counts().tolist() == [[0, 0, 0], [0, 0, 0]]


def test_a_captured_graph_counts_and_follows_the_switch() -> None:
    replicas = ReplicaMap(FIRST, 4, 0, "npu")
    logical = torch.tensor([[0], [0], [3]], dtype=torch.int32).npu()
    replicas.record(replicas.to_physical(logical))
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        physical = replicas.to_physical(logical)
        replicas.record(physical)
    replicas.counts()
    graph.replay()
    assert physical.flatten().tolist() == [0, 5, 4]
    graph.replay()
    assert replicas.counts().tolist() == [[2, 0, 0], [0, 2, 2]]
    replicas.switch(SECOND)
    graph.replay()
    # Expert 0 is in slot 5 alone now; expert 3 in 0 and 4, of which token 2 takes replica (2 + 3) mod 2.
    assert physical.flatten().tolist() == [5, 5, 4]
    assert replicas.counts().tolist() == [[0, 0, 0], [0, 1, 2]]


def test_a_placement_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=r"the placement has the shape \(2, 2\), the present one \(2, 3\)"):
        ReplicaMap(FIRST, 4, 0, "npu").switch(np.array([[0, 1], [2, 3]]))
