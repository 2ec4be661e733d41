"""Counters, and host time without compute."""

import torch

from ascend_sim import instruments


def test_operators_copies_and_graph_tasks_are_counted() -> None:
    x = torch.ones(4, device="npu")
    graph = torch.npu.NPUGraph()
    with instruments.counting() as capture, torch.npu.graph(graph):
        y = (x + 1).mul_(2)
    assert (capture["op:aten::add.Tensor"], capture["graph_tasks"]) == (0, 0)
    with instruments.counting() as counts:
        torch.add(x, 1)
        torch.add(x, 1)
        x.copy_(torch.ones(4))
        graph.replay()
        graph.replay()
    assert counts["op:aten::add.Tensor"] == 2
    assert counts["ops"] == 3
    assert counts["copies"] == 1
    assert (counts["replays"], counts["graph_tasks"]) == (2, 4)
    assert (counts["graph:aten::add.Tensor"], counts["graph:aten::mul_.Tensor"]) == (2, 2)
    assert counts["something else"] == 0
    assert y.tolist() == [4] * 4


def test_counting_outside_a_block_goes_on() -> None:
    before = instruments.counters()["ops"]
    torch.ones(1, device="npu") + 1
    assert instruments.counters()["ops"] > before


def test_free_compute_keeps_shapes_and_valid_indices() -> None:
    a, b = torch.ones(8, 16, device="npu"), torch.ones(16, 4, device="npu")
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        inside = a @ b
    inside.zero_()
    with instruments.free_compute():
        a @ b  # the first call of a signature computes
        (a @ b).argmax(-1)
        product = a @ b
        chosen = product.argmax(-1)
        graph.replay()
    assert (product.shape, product.dtype) == ((8, 4), torch.float32)
    assert chosen.tolist() == [0] * 8
    assert inside.sum().item() == 0
    graph.replay()
    assert inside.tolist() == [[16] * 4] * 8
    assert (a @ b).tolist() == [[16] * 4] * 8
