"""slot_mapping: literal slots, exact integer arithmetic per token, and the Triton source against both."""

from __future__ import annotations

import importlib.util

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import ascend_kernels
from ascend_kernels.launch import MAX_PROGRAMS
from ascend_kernels.ops.inputs.slot_mapping.naive import slot_mapping_naive
from ascend_kernels.ops.inputs.slot_mapping.plan import plan_slot_mapping

IMPLEMENTATIONS = ["naive"] + (["triton"] if importlib.util.find_spec("triton") else [])


def implementation(name: str):
    if name == "naive":
        return slot_mapping_naive
    from ascend_kernels.ops.inputs.slot_mapping.triton import slot_mapping_triton

    return slot_mapping_triton


def expected_slots(
    lengths: list[int], starts: list[int], table: list[list[int]], block_size: int, size: int, pad: int
) -> list[int]:
    slots = [
        table[request][(start + offset) // block_size] * block_size + (start + offset) % block_size
        for request, (length, start) in enumerate(zip(lengths, starts))
        for offset in range(length)
    ]
    return slots + [pad] * (size - len(slots))


def run(name: str, lengths, starts, table, block_size: int, size: int, pad: int = -1, padded_tokens: int = 0):
    query_start_loc = torch.tensor([0, *torch.tensor(lengths).cumsum(0).tolist()], dtype=torch.int32)
    positions = [start + offset for length, start in zip(lengths, starts) for offset in range(length)]
    positions = torch.tensor(positions + [0] * padded_tokens, dtype=torch.int64)
    slots = torch.full((size,), 99, dtype=torch.int32)
    implementation(name)(query_start_loc, positions, torch.tensor(table, dtype=torch.int32), block_size, slots, pad)
    return slots.tolist()


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
class TestSlots:
    def test_literal_values(self, name: str) -> None:
        assert run(name, [2, 1], [15, 3], [[7, 2], [5, 0]], 16, 6) == [127, 32, 83, -1, -1, -1]

    def test_page_numbers_beyond_two_to_the_24_stay_exact(self, name: str) -> None:
        assert run(name, [1], [1], [[16_777_217]], 16, 1) == [16_777_217 * 16 + 1]

    def test_tokens_behind_the_last_request_are_padding(self, name: str) -> None:
        assert run(name, [1, 1], [0, 1], [[3], [4]], 16, 5, pad=-7, padded_tokens=2) == [48, 65, -7, -7, -7]

    def test_a_request_without_tokens_takes_no_slot(self, name: str) -> None:
        assert run(name, [1, 0, 2], [4, 9, 0], [[1], [2], [3]], 16, 4) == [20, 48, 49, -1]

    def test_more_tokens_than_a_block_of_the_kernel(self, name: str) -> None:
        table = [list(range(1, 12))]
        assert run(name, [1100], [30], table, 128, 1200) == expected_slots([1100], [30], table, 128, 1200, -1)

    def test_no_slots_at_all(self, name: str) -> None:
        assert run(name, [], [], [[0]], 16, 0) == []

    @settings(max_examples=10, deadline=None)
    @given(data=st.data())
    def test_random_batches(self, name: str, data: st.DataObject) -> None:
        requests = data.draw(st.integers(1, 5))
        block_size = data.draw(st.sampled_from([1, 3, 16, 128]))
        lengths = data.draw(st.lists(st.integers(0, 7), min_size=requests, max_size=requests))
        starts = data.draw(st.lists(st.integers(0, 20), min_size=requests, max_size=requests))
        pages = 30 // block_size + 1
        table = data.draw(
            st.lists(
                st.lists(st.integers(0, 2**23), min_size=pages, max_size=pages), min_size=requests, max_size=requests
            )
        )
        size = sum(lengths) + data.draw(st.integers(0, 4))
        assert run(name, lengths, starts, table, block_size, size) == expected_slots(
            lengths, starts, table, block_size, size, -1
        )


def test_more_requests_than_programs_are_all_planned() -> None:
    assert plan_slot_mapping(3, 8).programs == 4
    assert plan_slot_mapping(200_000, 200_000).programs == MAX_PROGRAMS
    assert plan_slot_mapping(0, 0).programs == 0


def test_operator_is_well_formed() -> None:
    arguments = (
        torch.tensor([0, 2], dtype=torch.int32),
        torch.tensor([0, 1]),
        torch.tensor([[3]], dtype=torch.int32),
        16,
        torch.zeros(4, dtype=torch.int32),
        -1,
    )
    torch.library.opcheck(torch.ops.ascend_kernels.slot_mapping.default, arguments)


def test_public_function_writes_in_place() -> None:
    slots = torch.zeros(3, dtype=torch.int64)
    result = ascend_kernels.slot_mapping(
        torch.tensor([0, 1], dtype=torch.int32),
        torch.tensor([5]),
        torch.tensor([[2, 9]], dtype=torch.int32),
        4,
        slots,
    )
    assert result is None
    assert slots.tolist() == [9 * 4 + 1, -1, -1]
