"""Programs with one ordering fault each, and the same programs mended."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from ascend_sim import instruments

from .streams import CAPTURE, SIDE, UPDATES


@pytest.fixture(autouse=True)
def _check() -> Iterator[None]:
    with instruments.check_order():
        yield


def copy_without_a_wait(mended: bool) -> None:
    source, target = torch.ones(64, device="npu"), torch.zeros(64, device="npu")
    SIDE.wait_stream(torch.npu.current_stream())
    with torch.npu.stream(SIDE):
        target.copy_(source)
    if mended:
        torch.npu.current_stream().wait_stream(SIDE)
    target.add_(1)


def memory_reused_while_another_stream_reads(mended: bool) -> None:
    total = torch.zeros(1024, device="npu")
    tensor = torch.ones(1024, device="npu")
    SIDE.wait_stream(torch.npu.current_stream())
    with torch.npu.stream(SIDE):
        total.add_(tensor)
    if mended:
        tensor.record_stream(SIDE)
    del tensor
    torch.full((1024,), 7.0, device="npu")


@contextlib.contextmanager
def updating(stream: torch.npu.Stream, group: Any) -> Iterator[None]:
    with torch.npu.stream(stream):
        torch.npu.graph_task_update_begin(stream, group)
        try:
            yield
        finally:
            torch.npu.graph_task_update_end(stream)


def update_of_a_graph_task_after_its_replay(mended: bool) -> None:
    x, y = torch.ones(2, device="npu"), torch.zeros(2, device="npu")
    gate = torch.npu.ExternalEvent()
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph, stream=CAPTURE):
        stream = torch.npu.current_stream()
        if mended:
            gate.wait(stream)
            gate.reset(stream)
        torch.npu.graph_task_group_begin(stream)
        torch.add(x, 1, out=y)
        group = torch.npu.graph_task_group_end(stream)
    graph.replay()
    with updating(UPDATES, group):
        torch.add(x, 10, out=y)
    if mended:
        gate.record(UPDATES)


def two_updates_before_one_replay(mended: bool) -> None:
    x, y = torch.ones(2, device="npu"), torch.zeros(2, device="npu")
    gate = torch.npu.ExternalEvent()
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph, stream=CAPTURE):
        stream = torch.npu.current_stream()
        gate.wait(stream)
        gate.reset(stream)
        torch.npu.graph_task_group_begin(stream)
        torch.add(x, 1, out=y)
        group = torch.npu.graph_task_group_end(stream)
    for amount in (10, 20):  # the second update may come before the first replay has read the first
        if mended:
            UPDATES.wait_stream(torch.npu.current_stream())
        with updating(UPDATES, group):
            torch.add(x, amount, out=y)
        gate.record(UPDATES)
        graph.replay()


def pinned_source_overwritten(mended: bool) -> None:
    host, device = torch.arange(8.0).pin_memory(), torch.zeros(8, device="npu")
    device.copy_(host, non_blocking=True)
    copied = torch.npu.current_stream().record_event()
    if mended:
        copied.synchronize()
    host.numpy()[:] = 5
    torch.npu.synchronize()


def pinned_source_staged_again(mended: bool) -> None:
    host, device = torch.arange(8.0).pin_memory(), torch.zeros(8, device="npu")
    device.copy_(host, non_blocking=True)
    if mended:
        torch.npu.current_stream().synchronize()
    host += 1
    device.copy_(host, non_blocking=True)


def pinned_target_written_by_the_host(mended: bool) -> None:
    device = torch.ones(8, device="npu")
    host = torch.zeros(8).pin_memory()
    host.copy_(device, non_blocking=True)
    if mended:
        torch.npu.synchronize()
    host[3] = 9
    torch.npu.synchronize()


def streams_of_a_capture_without_a_join(mended: bool) -> None:
    x = torch.ones(16, device="npu")
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph, stream=CAPTURE):
        stream = torch.npu.current_stream()
        SIDE.wait_stream(stream)
        with torch.npu.stream(SIDE):
            y = x * 2
        if mended:
            stream.wait_stream(SIDE)
        x.add_(1)
        stream.wait_stream(SIDE)
        y.add_(x)
    graph.replay()


def event_on_the_wrong_stream(mended: bool) -> None:
    x = torch.ones(16, device="npu")
    SIDE.wait_stream(torch.npu.current_stream())
    with torch.npu.stream(SIDE):
        x.mul_(2)
    done = (SIDE if mended else torch.npu.current_stream()).record_event()
    torch.npu.current_stream().wait_event(done)
    x.sum()


def event_recorded_before_the_work(mended: bool) -> None:
    event = torch.npu.Event()
    x = torch.ones(16, device="npu")
    SIDE.wait_stream(torch.npu.current_stream())
    with torch.npu.stream(SIDE):
        event.record(SIDE)
        x.mul_(2)
        if mended:
            event.record(SIDE)
    event.wait(torch.npu.current_stream())
    x.sum()


def in_place_operator_beside_a_reader(mended: bool) -> None:
    x = torch.ones(16, device="npu")
    SIDE.wait_stream(torch.npu.current_stream())
    with torch.npu.stream(SIDE):
        read = x.sum()
    if mended:
        torch.npu.current_stream().wait_stream(SIDE)
    x.add_(1)
    del read


def replay_beside_an_operator_on_its_input(mended: bool) -> None:
    graph = torch.npu.NPUGraph()
    x = torch.ones(16, device="npu")
    with torch.npu.graph(graph, stream=CAPTURE):
        y = x * 2
    SIDE.wait_stream(torch.npu.current_stream())
    with torch.npu.stream(SIDE):
        graph.replay()
    if mended:
        torch.npu.current_stream().wait_stream(SIDE)
    x.fill_(3)
    del y


def two_operators_on_one_slice(mended: bool) -> None:
    x = torch.zeros(8, 6, device="npu")
    SIDE.wait_stream(torch.npu.current_stream())
    with torch.npu.stream(SIDE):
        x[:, 2:4] = 1
    (x[:, 4:] if mended else x[:, 3:]).fill_(2)


_UPDATE = r"aten::add.out on stream .* updates a task of graph \d+.*aten::add.out \(in graph"
_OVERWRITTEN = r"the host wrote to memory .*aten::copy_ on stream \d+ .* {} pinned host memory, float32\[8\]"
FAULTS: dict[Callable[[bool], None], str] = {
    copy_without_a_wait: r"aten::add_\S* on stream .* writes float32\[64\].*aten::copy_ on .* writes float32\[64\]",
    memory_reused_while_another_stream_reads: r"writes float32\[1024\].*aten::add_\S* on .* reads .*record_stream",
    update_of_a_graph_task_after_its_replay: _UPDATE,
    two_updates_before_one_replay: _UPDATE,
    pinned_source_overwritten: _OVERWRITTEN.format("from"),
    pinned_source_staged_again: _OVERWRITTEN.format("from"),
    pinned_target_written_by_the_host: _OVERWRITTEN.format("to"),
    streams_of_a_capture_without_a_join: r"aten::add_\S* \(in graph.*aten::mul\S* \(in .* on stream \d+ of the capture",
    event_on_the_wrong_stream: r"aten::sum\S* on .* reads .* aten::mul_\S* on .* writes .*Record an event",
    event_recorded_before_the_work: r"aten::sum\S* on .* reads .* aten::mul_\S* on .* writes",
    in_place_operator_beside_a_reader: r"aten::add_\S* on .* writes .* aten::sum\S* on .* reads",
    replay_beside_an_operator_on_its_input: r"aten::fill_\S* on .* writes .* aten::mul\S* \(in graph \d+\) on .* reads",
    two_operators_on_one_slice: r"aten::fill_\S* on .* writes float32\[8, 3\] at byte 12 .* float32\[8, 2\] at byte 8",
}


def run(program: Callable[[bool], None], mended: bool) -> None:
    program(mended)
    torch.npu.synchronize()


@pytest.mark.parametrize("program", FAULTS, ids=lambda program: program.__name__)
def test_a_fault_is_named(program: Callable[[bool], None], report: Callable[..., None]) -> None:
    with pytest.raises(RuntimeError, match=FAULTS[program]):
        run(program, mended=False)
    report("Stream order: faults that the check names", fault=program.__name__.replace("_", " "), named="yes")


@pytest.mark.parametrize("program", FAULTS, ids=lambda program: program.__name__)
def test_the_mended_program_passes(program: Callable[[bool], None]) -> None:
    run(program, mended=True)


def test_a_copy_to_the_host_has_not_arrived_until_the_host_waits() -> None:
    device = torch.arange(4.0).npu()
    host, indices = torch.zeros(4).pin_memory(), torch.zeros(4, dtype=torch.int32).pin_memory()
    host.copy_(device, non_blocking=True)
    indices.copy_(device, non_blocking=True)
    assert host.isnan().all()
    assert indices.tolist() == [torch.iinfo(torch.int32).min] * 4
    torch.npu.current_stream().synchronize()
    assert (host.tolist(), indices.tolist()) == ([0, 1, 2, 3], [0, 1, 2, 3])


def test_a_fresh_non_blocking_copy_read_at_once_has_no_values() -> None:
    values = torch.ones(4, device="npu").to("cpu", non_blocking=True)
    assert values.isnan().all()
    assert torch.ones(4, device="npu").to("cpu").tolist() == [1] * 4


def test_pageable_memory_is_copied_before_the_call_returns() -> None:
    host, device = torch.ones(4), torch.zeros(4, device="npu")
    device.copy_(host, non_blocking=True)
    host.zero_()
    host.copy_(device, non_blocking=True)
    assert host.tolist() == [1] * 4
