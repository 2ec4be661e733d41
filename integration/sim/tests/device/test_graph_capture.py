"""What a capture records, refuses and leaves alone."""

import gc

import pytest
import torch

from ascend_sim import instruments


@pytest.fixture
def x() -> torch.Tensor:
    return torch.arange(4.0).npu()


def test_captured_work_does_not_run_before_the_replay(x: torch.Tensor) -> None:
    y = torch.zeros(4, device="npu")
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        y.copy_(x + 1)
    assert y.tolist() == [0, 0, 0, 0]
    graph.replay()
    assert y.tolist() == [1, 2, 3, 4]


def test_replay_reads_present_inputs_and_writes_the_same_outputs(x: torch.Tensor) -> None:
    weight = torch.tensor([[1.0, 0], [0, 2], [3, 0], [0, 4]]).npu()
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        y = torch.nn.functional.silu(x @ weight)
        top = y.topk(1).indices
    address = y.data_ptr()
    for values in ([1.0, 0, 0, 0], [0.0, 1, 0, 1]):
        x.copy_(torch.tensor(values))
        graph.replay()
        expected = torch.nn.functional.silu(torch.tensor(values) @ weight.cpu())
        torch.testing.assert_close(y.cpu(), expected)
        assert top.item() == int(expected.argmax())
    assert y.data_ptr() == address


def test_indexed_writes_are_replayed(x: torch.Tensor) -> None:
    cache, slots = torch.zeros(3, 4, device="npu"), torch.tensor([1]).npu()
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        cache[slots] = x[None] * 2
    slots.fill_(2)
    graph.replay()
    assert cache.tolist() == [[0] * 4, [0] * 4, [0, 2, 4, 6]]


@pytest.mark.parametrize(
    "synchronize",
    [
        pytest.param(lambda x: x.sum().item(), id="item"),
        pytest.param(lambda x: x.cpu(), id="to-cpu"),
        pytest.param(lambda x: x.nonzero(), id="nonzero"),
        pytest.param(lambda x: x[x > 1], id="mask-index"),
        pytest.param(lambda x: torch.npu.synchronize(), id="synchronize-device"),
        pytest.param(lambda x: torch.npu.current_stream().synchronize(), id="synchronize-stream"),
    ],
)
def test_synchronizing_is_refused_while_capturing(x: torch.Tensor, synchronize) -> None:
    with pytest.raises(RuntimeError, match="not permitted while"), torch.npu.graph(torch.npu.NPUGraph()):
        synchronize(x)
    assert (x + 1).tolist() == [1, 2, 3, 4]  # the device is usable afterwards


def test_random_draws_differ_between_replays_and_follow_the_seed() -> None:
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        y = torch.empty(8, device="npu").uniform_()
    runs = []
    for _ in range(2):
        torch.npu.manual_seed(7)
        graph.replay()
        first = y.cpu()
        graph.replay()
        runs.append((first, y.cpu()))
    assert torch.equal(runs[0][0], runs[1][0])
    assert torch.equal(runs[0][1], runs[1][1])
    assert not torch.equal(runs[0][0], runs[0][1])


def test_another_stream_joins_through_events(x: torch.Tensor) -> None:
    side = torch.npu.Stream()
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        main = torch.npu.current_stream()
        side.wait_stream(main)
        with torch.npu.stream(side):
            y = x * 10
        main.wait_stream(side)
        z = y + 1
    graph.replay()
    assert z.tolist() == [1, 11, 21, 31]


def test_a_stream_that_joined_must_be_waited_for(x: torch.Tensor) -> None:
    side = torch.npu.Stream()
    capture = torch.npu.graph(torch.npu.NPUGraph())
    capture.__enter__()
    side.wait_stream(torch.npu.current_stream())
    with torch.npu.stream(side):
        x * 10
    with pytest.raises(RuntimeError, match="no stream of the capture waited"):
        capture.__exit__(None, None, None)


def test_operators_the_npu_lacks_are_not_capturable(x: torch.Tensor) -> None:
    """torch_npu runs them on the CPU, which needs the host in the middle of the graph."""
    missing = "aten::special_bessel_j0.out"
    with instruments.counting() as counts:
        torch.special.bessel_j0(x)
    assert counts["cpu_fallbacks"] == 1
    assert counts[f"op:{missing}"] == 1
    with pytest.raises(RuntimeError, match=f"{missing}.*fall back to the CPU"), torch.npu.graph(torch.npu.NPUGraph()):
        torch.special.bessel_j0(x)


def test_graph_memory_lives_with_the_graph_and_is_freed_after_it(x: torch.Tensor) -> None:
    torch.npu.synchronize()
    gc.collect()
    torch.npu.empty_cache()
    before = torch.npu.memory_reserved()
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        big = torch.zeros(1 << 20, device="npu")
        y = big[:4] + x
    del big
    graph.replay()
    assert y.tolist() == [0, 1, 2, 3]
    assert torch.npu.memory_reserved() > before
    del y, graph
    gc.collect()
    torch.npu.empty_cache()
    assert torch.npu.memory_reserved() == before


def test_two_graphs_share_a_pool(x: torch.Tensor) -> None:
    first, second = torch.npu.NPUGraph(), torch.npu.NPUGraph()
    with torch.npu.graph(first):
        a = x + 1
    with torch.npu.graph(second, pool=first.pool()):
        b = x + 2
    first.replay()
    assert a.tolist() == [1, 2, 3, 4]
    second.replay()
    assert b.tolist() == [2, 3, 4, 5]
