"""The check and the random order on random programs, against counting over their graph."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_sim import instruments

from .programs import STREAMS, Program, Step, ordered, programs, run_in_sequence, run_on_streams, unordered_conflicts


@pytest.fixture(scope="module")
def streams() -> list[torch.npu.Stream]:
    return [torch.npu.Stream() for _ in range(STREAMS)]


@given(program=programs())
@settings(max_examples=150, deadline=None)
def test_the_check_finds_what_counting_finds(program: Program, streams: list[torch.npu.Stream]) -> None:
    with instruments.check_order():
        if unordered_conflicts(program):
            with pytest.raises(RuntimeError, match="unordered: aten::add_"):
                run_on_streams(program, streams)
        else:
            assert run_on_streams(program, streams) == run_in_sequence(program)


@given(program=programs().map(ordered), seed=st.integers(0, 2**32))
@settings(max_examples=100, deadline=None)
def test_ordered_programs_are_clean_and_the_same_in_every_order(
    program: Program, seed: int, streams: list[torch.npu.Stream]
) -> None:
    expected = run_in_sequence(program)
    with instruments.check_order():
        assert run_on_streams(program, streams) == expected
    with instruments.random_order(seed):
        assert run_on_streams(program, streams) == expected


@given(program=programs().map(ordered), data=st.data())
@settings(max_examples=60, deadline=None)
def test_a_missing_wait_is_found(program: Program, data: st.DataObject, streams: list[torch.npu.Stream]) -> None:
    def without(index: int, wait: int) -> Program:
        step = program[index]
        kept = tuple(other for other in step.waits if other != wait)
        return (*program[:index], Step(step.stream, step.target, step.source, kept), *program[index + 1 :])

    shorter = [without(index, wait) for index, step in enumerate(program) for wait in step.waits]
    needed = [candidate for candidate in shorter if unordered_conflicts(candidate)]
    if not needed:
        return
    with instruments.check_order(), pytest.raises(RuntimeError, match="unordered: aten::add_"):
        run_on_streams(data.draw(st.sampled_from(needed)), streams)
