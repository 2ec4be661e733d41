"""Which replica a choice goes to, and what is counted."""

from __future__ import annotations

import torch

from ascend_moe.routing import choose_replicas, count_choices

# Expert 0 in the slots 0 and 5, expert 1 in 1 alone, expert 2 in 2, 3 and 4.
REPLICAS = torch.tensor([[0, 5, 0], [1, 0, 0], [2, 3, 4]])
COUNTS = torch.tensor([2, 1, 3])


def test_replicas_take_turns_by_token() -> None:
    experts = torch.tensor([[0, 2]] * 4, dtype=torch.int32).npu()
    physical = choose_replicas(experts, REPLICAS.npu(), COUNTS.npu())
    # Token t takes replica (t + expert) mod the number of them.
    assert physical.tolist() == [[0, 4], [5, 2], [0, 3], [5, 4]]
    later = choose_replicas(experts, REPLICAS.npu(), COUNTS.npu(), first_turn=1)
    assert later.tolist() == [[5, 2], [0, 3], [5, 4], [0, 2]]


def test_no_tokens() -> None:
    none = torch.zeros(0, 2, dtype=torch.int32).npu()
    assert choose_replicas(none, REPLICAS.npu(), COUNTS.npu()).shape == (0, 2)


def test_choices_are_counted_while_that_is_enabled() -> None:
    counts, enabled = torch.zeros(6, dtype=torch.int32).npu(), torch.ones((), dtype=torch.bool).npu()
    physical = torch.tensor([[0, 4], [5, 4]]).npu()
    count_choices(counts, physical, enabled)
    enabled.fill_(False)
    count_choices(counts, physical, enabled)
    assert counts.tolist() == [1, 0, 0, 0, 2, 1]


def test_a_captured_graph_follows_the_maps() -> None:
    experts, replicas, enabled = torch.tensor([[0], [2]]).npu(), REPLICAS.npu(), torch.ones((), dtype=torch.bool).npu()
    counts, number = torch.zeros(6, dtype=torch.int32).npu(), COUNTS.npu()
    choose_replicas(experts, replicas, number)
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        physical = choose_replicas(experts, replicas, number)
        count_choices(counts, physical, enabled)
    replicas.copy_(torch.tensor([[3, 0, 0], [1, 0, 0], [2, 4, 5]]))
    number.copy_(torch.tensor([1, 1, 3]))
    graph.replay()
    assert physical.flatten().tolist() == [3, 2]
    enabled.fill_(False)
    graph.replay()
    assert counts.tolist() == [0, 0, 1, 1, 0, 0]
