"""What orders work in the check, and what does not."""

from collections.abc import Callable, Iterator

import pytest
import torch

from ascend_sim import instruments

from .streams import CAPTURE, SIDE


@pytest.fixture(autouse=True)
def _check() -> Iterator[None]:
    with instruments.check_order():
        yield


def event(first: torch.npu.Stream, second: torch.npu.Stream) -> None:
    second.wait_event(first.record_event())


def stream_synchronisation(first: torch.npu.Stream, second: torch.npu.Stream) -> None:
    first.synchronize()


def event_synchronisation(first: torch.npu.Stream, second: torch.npu.Stream) -> None:
    first.record_event().synchronize()


def event_query(first: torch.npu.Stream, second: torch.npu.Stream) -> None:
    assert first.record_event().query()


def device_synchronisation(first: torch.npu.Stream, second: torch.npu.Stream) -> None:
    torch.npu.synchronize()


def external_event(first: torch.npu.Stream, second: torch.npu.Stream) -> None:
    gate = torch.npu.ExternalEvent()
    gate.record(first)
    gate.wait(second)


def a_value_read_by_the_host(first: torch.npu.Stream, second: torch.npu.Stream) -> None:
    with torch.npu.stream(first):
        torch.zeros(1, device="npu").item()


def a_third_stream(first: torch.npu.Stream, second: torch.npu.Stream) -> None:
    third = torch.npu.Stream()
    third.wait_stream(first)
    second.wait_stream(third)


def nothing(first: torch.npu.Stream, second: torch.npu.Stream) -> None:
    pass


def the_other_way_round(first: torch.npu.Stream, second: torch.npu.Stream) -> None:
    first.wait_stream(second)


def synchronisation_of_another_stream(first: torch.npu.Stream, second: torch.npu.Stream) -> None:
    second.synchronize()


Edge = Callable[[torch.npu.Stream, torch.npu.Stream], None]


def write_on_both(edge: Edge) -> None:
    first, second = torch.npu.Stream(), torch.npu.Stream()
    x = torch.zeros(4, device="npu")
    torch.npu.synchronize()
    with torch.npu.stream(first):
        x.add_(1)
    edge(first, second)
    with torch.npu.stream(second):
        x.add_(1)
    torch.npu.synchronize()
    assert x.tolist() == [2] * 4


@pytest.mark.parametrize(
    "edge",
    [
        event,
        stream_synchronisation,
        event_synchronisation,
        event_query,
        device_synchronisation,
        external_event,
        a_value_read_by_the_host,
        a_third_stream,
    ],
    ids=lambda edge: edge.__name__,
)
def test_an_edge_orders(edge: Edge) -> None:
    write_on_both(edge)


@pytest.mark.parametrize(
    "edge", [nothing, the_other_way_round, synchronisation_of_another_stream], ids=lambda edge: edge.__name__
)
def test_anything_else_does_not(edge: Edge) -> None:
    with pytest.raises(RuntimeError, match="unordered"):
        write_on_both(edge)


def test_readers_need_no_order() -> None:
    x = torch.ones(4, device="npu")
    torch.npu.synchronize()
    for stream in (torch.npu.Stream(), torch.npu.Stream()):
        with torch.npu.stream(stream):
            x.sum()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((slice(0, 4),), (slice(4, 8),)),
        ((slice(None), slice(0, 3)), (slice(None), slice(3, 6))),
        ((slice(None), slice(None, None, 2)), (slice(None), slice(1, None, 2))),
        ((slice(None, None, 2), slice(0, 4)), (slice(1, None, 2),)),
        ((slice(2, 6), slice(2, 4), slice(0, 2)), (slice(2, 6), slice(2, 4), slice(2, 4))),
    ],
    ids=["rows", "columns", "interleaved-columns", "interleaved-rows", "inner-blocks"],
)
def test_disjoint_views_of_one_tensor_need_no_order(first: tuple[slice, ...], second: tuple[slice, ...]) -> None:
    x = torch.zeros(8, 6, 4, device="npu")
    torch.npu.synchronize()
    for view in (x[first], x[second], x.transpose(0, 2)[3:, :, :0]):
        with torch.npu.stream(torch.npu.Stream()):
            view.add_(1)


def test_memory_freed_and_reused_on_its_stream_is_ordered() -> None:
    for _ in range(3):
        x = torch.ones(1024, device="npu")
        y = x * 2
        del x, y


def test_the_allocators_questions_do_not_order_the_host() -> None:
    x, total = torch.ones(1024, device="npu"), torch.zeros(1024, device="npu")
    SIDE.wait_stream(torch.npu.current_stream())
    with torch.npu.stream(SIDE):
        total.add_(x)
    x.record_stream(SIDE)
    del x
    kept = [torch.ones(1024, device="npu") for _ in range(4)]  # asks whether the block of x is free again
    with pytest.raises(RuntimeError, match="unordered"):
        total.add_(kept[0])


def test_a_replay_takes_the_order_of_its_launch() -> None:
    x = torch.ones(4, device="npu")
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph, stream=CAPTURE):
        y = x * 2
    SIDE.wait_stream(torch.npu.current_stream())
    with torch.npu.stream(SIDE):
        x.add_(1)
        done = SIDE.record_event()
    torch.npu.current_stream().wait_event(done)
    graph.replay()
    assert y.tolist() == [4] * 4


def test_the_streams_of_a_graph_are_joined_when_it_has_run() -> None:
    x, y = torch.ones(4, device="npu"), torch.zeros(4, device="npu")
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph, stream=CAPTURE):
        stream = torch.npu.current_stream()
        SIDE.wait_stream(stream)
        with torch.npu.stream(SIDE):
            y.copy_(x)
        stream.wait_stream(SIDE)
    for _ in range(2):
        graph.replay()
        y.add_(1)
    assert y.tolist() == [2] * 4


def test_a_wait_for_an_event_of_an_ended_capture_is_refused() -> None:
    graph, inside = torch.npu.NPUGraph(), torch.npu.Event()
    x = torch.ones(4, device="npu")
    with torch.npu.graph(graph, stream=CAPTURE):
        x.add_(1)
        inside.record()
    with pytest.raises(RuntimeError, match="recorded inside a capture, which has ended"):
        torch.npu.Stream().wait_event(inside)


def test_a_fault_outside_the_block_is_not_looked_for() -> None:
    torch.ops.ascend_sim.set_order("off", 0)
    write_on_both(nothing)
    torch.ops.ascend_sim.set_order("check", 0)


def test_a_copy_between_devices_orders_the_streams_of_both() -> None:
    x = torch.ones(4, device="npu:0")
    y = x.to("npu:1")
    y.add_(1)
    x.zero_()
    assert y.tolist() == [2] * 4
