"""decode_inputs: literal rows, one Python loop as the oracle, and the Triton source against both."""

from __future__ import annotations

import importlib.util

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_kernels.launch import MAX_PROGRAMS
from ascend_kernels.ops.inputs.decode_inputs.naive import decode_inputs_naive
from ascend_kernels.ops.inputs.decode_inputs.plan import BLOCKS, plan_decode_inputs

IMPLEMENTATIONS = ["naive"] + (["triton"] if importlib.util.find_spec("triton") else [])


def implementation(name: str):
    if name == "naive":
        return decode_inputs_naive
    from ascend_kernels.ops.inputs.decode_inputs.triton import decode_inputs_triton

    return decode_inputs_triton


def run(name: str, rows: list[tuple[int, int, int]], previous: torch.Tensor | None, table, block_size: int):
    """Rows are (position, source, token); returns input ids, positions, lengths and slots of one row more."""
    size = len(rows) + 1
    staged = torch.tensor(rows, dtype=torch.int32).reshape(len(rows), 3).t().contiguous()
    outputs = (
        torch.full((size,), 77, dtype=torch.int32),
        torch.full((size,), 77, dtype=torch.int64),
        torch.full((size,), 77, dtype=torch.int32),
        torch.full((size,), 77, dtype=torch.int32),
    )
    implementation(name)(staged, previous, torch.tensor(table, dtype=torch.int32), block_size, *outputs, -1)
    return [output.tolist() for output in outputs]


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
class TestRows:
    def test_literal_values(self, name: str) -> None:
        rows = [(16, 1, 0), (3, -1, 42), (-1, -1, 9)]
        previous = torch.tensor([[11], [12]], dtype=torch.int32)
        ids, positions, lengths, slots = run(name, rows, previous, [[5, 6], [7, 8], [9, 9]], 16)
        assert ids == [12, 42, 0, 77]
        assert positions == [16, 3, 0, 77]
        assert lengths == [17, 4, 0, 77]
        assert slots == [96, 115, -1, 77]

    def test_without_previous_tokens(self, name: str) -> None:
        ids, *_ = run(name, [(0, -1, 3), (1, -1, 4)], None, [[1], [2]], 16)
        assert ids == [3, 4, 77]

    def test_previous_tokens_may_be_strided_and_64_bit(self, name: str) -> None:
        previous = torch.tensor([[1, 2, 3], [4, 5, 6]])[:, ::2]
        ids, *_ = run(name, [(0, 1, 0), (0, 0, 0)], previous, [[1], [2]], 16)
        assert ids == [4, 1, 77]

    def test_a_source_of_minus_one_reads_nothing_before_the_buffer(self, name: str) -> None:
        guarded = torch.tensor([[-999], [5]], dtype=torch.int32)
        ids, *_ = run(name, [(2, -1, 8)], guarded[1:], [[1]], 16)
        assert ids == [8, 77]

    def test_no_rows(self, name: str) -> None:
        assert run(name, [], None, [[0]], 16) == [[77]] * 4

    @settings(max_examples=10, deadline=None)
    @given(data=st.data())
    def test_random_rows(self, name: str, data: st.DataObject) -> None:
        count = data.draw(st.integers(1, 9))
        block_size = data.draw(st.sampled_from([16, 128]))
        row = st.tuples(st.integers(-1, 300), st.integers(-1, 3), st.integers(0, 99))
        rows = data.draw(st.lists(row, min_size=count, max_size=count))
        page = st.integers(0, 2**23)
        table = data.draw(st.lists(st.lists(page, min_size=20, max_size=20), min_size=count, max_size=count))
        previous = torch.tensor([[100], [101], [102], [103]], dtype=torch.int32)
        ids, positions, lengths, slots = run(name, rows, previous, table, block_size)
        for index, (position, source, token) in enumerate(rows):
            if position < 0:
                assert (ids[index], positions[index], lengths[index], slots[index]) == (0, 0, 0, -1)
                continue
            assert ids[index] == (100 + source if source >= 0 else token)
            assert (positions[index], lengths[index]) == (position, position + 1)
            assert slots[index] == table[index][position // block_size] * block_size + position % block_size


def test_every_row_is_planned_once() -> None:
    for rows in (1, 2, 3, 1000, BLOCKS[0], BLOCKS[1], BLOCKS[1] + 1, 5000):
        plan = plan_decode_inputs(rows)
        assert plan.programs * plan.block >= rows > (plan.programs - 1) * plan.block
    assert plan_decode_inputs(0).programs == 0
    with pytest.raises(ValueError, match="at most 65535"):
        plan_decode_inputs(BLOCKS[-1] * MAX_PROGRAMS + 1)


def test_operator_is_well_formed() -> None:
    arguments = (
        torch.tensor([[3, -1], [0, -1], [0, 0]], dtype=torch.int32),
        torch.tensor([[5]], dtype=torch.int32),
        torch.tensor([[3], [4]], dtype=torch.int32),
        16,
        torch.zeros(2, dtype=torch.int32),
        torch.zeros(2, dtype=torch.int64),
        torch.zeros(2, dtype=torch.int32),
        torch.zeros(2, dtype=torch.int32),
        -1,
    )
    torch.library.opcheck(torch.ops.ascend_kernels.decode_inputs.default, arguments)
