"""Replays, task updates and external events, in the order hardware has."""

import threading

import pytest
import torch

from ascend_sim import instruments


class Graph:
    """Captures `y = x + amount` as an updatable task group, behind an external event if `gated`, then `z = y * 2`."""

    def __init__(self, gated: bool) -> None:
        self.x = torch.ones(2, device="npu")
        self.y = torch.zeros(2, device="npu")
        self.gate = torch.npu.ExternalEvent() if gated else None
        self.update_stream = torch.npu.Stream()
        self.graph = torch.npu.NPUGraph()
        with torch.npu.graph(self.graph):
            stream = torch.npu.current_stream()
            if self.gate:
                self.gate.wait(stream)
                self.gate.reset(stream)
            torch.npu.graph_task_group_begin(stream)
            torch.add(self.x, 1, out=self.y)
            self.group = torch.npu.graph_task_group_end(stream)
            self.z = self.y * 2

    def update(self, amount: int, record: bool = True) -> None:
        with torch.npu.stream(self.update_stream):
            torch.npu.graph_task_update_begin(self.update_stream, self.group)
            torch.add(self.x, amount, out=self.y)
            torch.npu.graph_task_update_end(self.update_stream)
            if self.gate and record:
                self.gate.record(self.update_stream)


def test_update_before_the_replay_takes_effect() -> None:
    graph = Graph(gated=False)
    graph.update(10)
    graph.graph.replay()
    assert graph.z.tolist() == [22, 22]


def test_ungated_update_after_the_replay_does_not_change_it() -> None:
    graph = Graph(gated=False)
    graph.graph.replay()
    graph.update(10)
    assert graph.z.tolist() == [4, 4]
    graph.graph.replay()
    assert graph.z.tolist() == [22, 22]


def test_gated_replay_takes_the_update_that_follows_it() -> None:
    graph = Graph(gated=True)
    for amount in (10, 20, 30):
        graph.graph.replay()
        graph.update(amount)
        assert graph.z.tolist() == [2 * (1 + amount)] * 2


def test_gated_replay_after_its_update_runs_at_once() -> None:
    graph = Graph(gated=True)
    graph.update(10)
    with instruments.counting() as counts:
        graph.graph.replay()
    assert counts["suspended_replays"] == 0
    assert graph.z.tolist() == [22, 22]


def test_a_gate_opens_for_one_replay_only() -> None:
    graph = Graph(gated=True)
    graph.update(10)
    graph.graph.replay()
    graph.graph.replay()
    with pytest.raises(RuntimeError, match="suspended at task"):
        graph.z.tolist()
    graph.update(20)
    assert graph.z.tolist() == [42, 42]


def test_operators_behind_a_suspended_replay_wait_for_it() -> None:
    graph = Graph(gated=True)
    graph.graph.replay()
    after = graph.z + 1  # same stream: queued, its value comes with the replay's
    copy = torch.zeros(2, device="npu").copy_(graph.z)
    graph.update(10)
    assert after.tolist() == [23, 23]
    assert copy.tolist() == [22, 22]


def test_operators_on_other_streams_do_not_wait() -> None:
    graph = Graph(gated=True)
    graph.graph.replay()
    with torch.npu.stream(torch.npu.Stream()):
        assert (graph.x * 3).tolist() == [3, 3]
    graph.update(10)
    assert graph.z.tolist() == [22, 22]


def test_an_event_recorded_behind_a_suspended_replay_orders_other_streams() -> None:
    graph = Graph(gated=True)
    other = torch.npu.Stream()
    graph.graph.replay()
    done = torch.npu.current_stream().record_event()
    assert not done.query()
    other.wait_event(done)
    with torch.npu.stream(other):
        result = graph.z + 1
    graph.update(10)
    assert done.query()
    other.synchronize()
    assert result.tolist() == [23, 23]


def test_a_host_copy_behind_a_suspended_replay_arrives_with_its_event() -> None:
    graph = Graph(gated=True)
    host = torch.zeros(2).pin_memory()
    graph.graph.replay()
    host.copy_(graph.z, non_blocking=True)
    done = torch.npu.current_stream().record_event()
    assert host.tolist() == [0, 0]
    graph.update(10)
    done.synchronize()
    assert host.tolist() == [22, 22]


def test_reading_a_replay_whose_event_never_comes_names_the_event() -> None:
    graph = Graph(gated=True)
    graph.graph.replay()
    graph.update(10, record=False)
    with pytest.raises(RuntimeError, match=r"graph \d+ .*suspended at task 0 of \d+.*waits for event \d+"):
        graph.z.tolist()
    with pytest.raises(RuntimeError, match="waits for event"):
        torch.npu.synchronize()
    graph.gate.record(graph.update_stream)
    assert graph.z.tolist() == [22, 22]


def test_the_host_waits_for_an_event_that_another_thread_records() -> None:
    graph = Graph(gated=True)
    graph.graph.replay()
    timer = threading.Timer(0.05, graph.update, (10,))
    timer.start()
    torch.npu.synchronize()
    assert graph.z.tolist() == [22, 22]
    timer.join()


def test_two_gated_layers_run_as_far_as_they_are_released() -> None:
    first, second = torch.npu.ExternalEvent(), torch.npu.ExternalEvent()
    x, y, z = (torch.ones(1, device="npu") for _ in range(3))
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        stream = torch.npu.current_stream()
        for event, target in ((first, y), (second, z)):
            event.wait(stream)
            event.reset(stream)
            target.copy_(x * 5)
    side = torch.npu.Stream()
    graph.replay()
    first.record(side)
    with torch.npu.stream(side):
        assert (y.tolist(), z.tolist()) == ([5], [1])
    second.record(side)
    assert z.tolist() == [5]


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (lambda g: torch.sub(g.x, 1, out=g.y), "submits aten::sub.out where aten::add.out was captured"),
        (lambda g: [torch.add(g.x, 1, out=g.y) for _ in range(2)], "more tasks than the captured group"),
        (lambda g: g.y.tolist(), "not permitted while a graph task is updated"),
    ],
    ids=["other-operator", "too-many-tasks", "reads-a-value"],
)
def test_an_update_that_does_not_fit_is_refused(operation, message: str) -> None:
    graph = Graph(gated=False)
    with torch.npu.stream(graph.update_stream):
        torch.npu.graph_task_update_begin(graph.update_stream, graph.group)
        with pytest.raises(RuntimeError, match=message):
            operation(graph)
        torch.npu.graph_task_update_end(graph.update_stream)


def test_a_task_group_needs_a_capture() -> None:
    with pytest.raises(RuntimeError, match="not capturing"):
        torch.npu.graph_task_group_begin(torch.npu.Stream())


def test_an_error_inside_a_replay_names_the_operator() -> None:
    table, index = torch.zeros(3, 2, device="npu"), torch.tensor([0]).npu()
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        torch.nn.functional.embedding(index, table)
    index.fill_(99)
    with pytest.raises(RuntimeError, match=r"aten::embedding failed.*out of range"):
        graph.replay()
