"""Random legal orders: what is unordered shows, what is ordered does not change, and a seed repeats."""

from collections.abc import Callable

import pytest
import torch

from ascend_sim import instruments

from .streams import CAPTURE, SIDE, UPDATES

SEEDS = range(12)


def outcomes(program: Callable[[bool], list[float]], mended: bool) -> list[list[float]]:
    """What the program gives for each seed."""
    results = []
    for seed in SEEDS:
        with instruments.random_order(seed):
            results.append(program(mended))
    return results


def copy_beside_an_addition(mended: bool) -> list[float]:
    source, target = torch.ones(4, device="npu"), torch.zeros(4, device="npu")
    SIDE.wait_stream(torch.npu.current_stream())
    with torch.npu.stream(SIDE):
        target.copy_(source)
    if mended:
        torch.npu.current_stream().wait_stream(SIDE)
    target.add_(1)
    torch.npu.synchronize()
    return target.tolist()


def memory_reused(mended: bool) -> list[float]:
    total, tensor = torch.zeros(1024, device="npu"), torch.ones(1024, device="npu")
    SIDE.wait_stream(torch.npu.current_stream())
    with torch.npu.stream(SIDE):
        total.add_(tensor)
    if mended:
        tensor.record_stream(SIDE)
    del tensor
    torch.full((1024,), 7.0, device="npu")
    torch.npu.synchronize()
    return total[:2].tolist()


def pinned_source_overwritten(mended: bool) -> list[float]:
    host, device = torch.arange(4.0).pin_memory(), torch.zeros(4, device="npu")
    device.copy_(host, non_blocking=True)
    if mended:
        torch.npu.current_stream().synchronize()
    host.numpy()[:] = 5
    return device.tolist()


def copy_to_the_host_read_early(mended: bool) -> list[float]:
    device = torch.arange(4.0).npu() + 1
    host = torch.zeros(4).pin_memory()
    host.copy_(device, non_blocking=True)
    if mended:
        torch.npu.current_stream().synchronize()
    return host.tolist()


def capture_of_two_streams(mended: bool) -> list[float]:
    x = torch.ones(4, device="npu")
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
    graph.replay()
    return y.tolist()


def update_after_the_replay(mended: bool) -> list[float]:
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
    for amount in (10, 20):
        graph.replay()
        with torch.npu.stream(UPDATES):
            torch.npu.graph_task_update_begin(UPDATES, group)
            torch.add(x, amount, out=y)
            torch.npu.graph_task_update_end(UPDATES)
            if mended:
                gate.record(UPDATES)
        if mended:
            UPDATES.wait_stream(torch.npu.current_stream())
    return y.tolist()


PROGRAMS: dict[Callable[[bool], list[float]], list[float]] = {
    copy_beside_an_addition: [2] * 4,
    memory_reused: [1] * 2,
    pinned_source_overwritten: [0, 1, 2, 3],
    copy_to_the_host_read_early: [1, 2, 3, 4],
    capture_of_two_streams: [7] * 4,
    update_after_the_replay: [21] * 2,
}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_fault_shows_as_values_that_depend_on_the_seed(program: Callable[[bool], list[float]]) -> None:
    seen = {tuple(outcome) for outcome in outcomes(program, mended=False)}
    assert tuple(PROGRAMS[program]) in seen
    assert len(seen) > 1


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_the_mended_program_gives_the_same_in_every_order(program: Callable[[bool], list[float]]) -> None:
    assert outcomes(program, mended=True) == [PROGRAMS[program]] * len(SEEDS)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_seed_repeats(program: Callable[[bool], list[float]]) -> None:
    assert outcomes(program, mended=False) == outcomes(program, mended=False)


def test_waiting_for_one_stream_leaves_the_others_where_they_are() -> None:
    def finished_early(seed: int) -> bool:
        with instruments.random_order(seed):
            x = torch.ones(2, device="npu")
            SIDE.wait_stream(torch.npu.current_stream())
            with torch.npu.stream(SIDE):
                for _ in range(4):
                    x.add_(1)
            torch.npu.current_stream().synchronize()
            return SIDE.query()

    assert {finished_early(seed) for seed in SEEDS} == {True, False}


def test_polling_an_event_makes_progress() -> None:
    with instruments.random_order(3):
        x = torch.ones(2, device="npu") + 1
        event = torch.npu.current_stream().record_event()
        while not event.query():
            pass
        assert x.tolist() == [2, 2]


def test_errors_of_queued_work_arrive_with_the_synchronisation() -> None:
    with instruments.random_order(0):
        table, index = torch.zeros(3, 2, device="npu"), torch.tensor([99]).npu()
        result = torch.nn.functional.embedding(index, table)
        with pytest.raises(RuntimeError, match=r"aten::embedding failed.*out of range"):
            torch.npu.synchronize()
        assert result.shape == (1, 2)
