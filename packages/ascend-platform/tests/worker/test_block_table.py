"""Block tables: what reaches the device, and when."""

from __future__ import annotations

import pytest
import torch
from vllm.v1.worker.block_table import MultiGroupBlockTable

from vllm_ascend.worker.block_table import AscendBlockTable, adopt

BLOCK = 128


@pytest.fixture
def table() -> AscendBlockTable:
    return AscendBlockTable(BLOCK, 6, 4, 32, False, torch.device("npu:0"), BLOCK, 1)


def on_device(table: AscendBlockTable) -> list[list[int]]:
    return table.block_table.gpu.cpu().tolist()


def test_rows_reach_the_device_with_the_commit(table: AscendBlockTable) -> None:
    table.add_row([3, 4], 0)
    table.add_row([5], 1)
    assert on_device(table)[0][:2] == [0, 0]
    table.commit_block_table(2)
    assert on_device(table)[:2] == [[3, 4, 0, 0], [5, 0, 0, 0]]


def test_a_commit_without_changes_copies_nothing(table: AscendBlockTable) -> None:
    table.add_row([3], 0)
    table.commit_block_table(1)
    table.block_table.gpu.fill_(9)
    table.commit_block_table(1)
    assert on_device(table)[0] == [9, 9, 9, 9]
    table.append_row([8], 0)
    table.commit_block_table(1)
    assert on_device(table)[0] == [3, 8, 0, 0]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda table: table.move_row(2, 0), [[7, 0], [5, 6], [7, 0]]),
        (lambda table: table.swap_row(0, 1), [[5, 6], [3, 0], [7, 0]]),
        (lambda table: table.clear_row(1), [[3, 0], [0, 0], [7, 0]]),
        (lambda table: table.append_row([], 1), [[3, 0], [5, 6], [7, 0]]),
    ],
    ids=["move", "swap", "clear", "append-nothing"],
)
def test_every_kind_of_change_is_committed(table: AscendBlockTable, change, expected) -> None:
    for row, pages in enumerate(([3], [5, 6], [7])):
        table.add_row(pages, row)
    table.commit_block_table(3)
    change(table)
    table.commit_block_table(3)
    assert [row[:2] for row in on_device(table)[:3]] == expected


def test_slots_of_a_mixed_batch(table: AscendBlockTable) -> None:
    table.add_row([2, 5], 0)
    table.add_row([1], 1)
    table.commit_block_table(2)
    start = torch.tensor([0, 3, 4], dtype=torch.int32).npu()
    positions = torch.tensor([127, 128, 129, 6]).npu()
    table.compute_slot_mapping(2, start, positions)
    slots = table.slot_mapping.gpu
    assert slots.dtype == torch.int32
    assert slots.cpu().tolist() == [2 * 128 + 127, 5 * 128, 5 * 128 + 1, 128 + 6] + [-1] * 28


def test_a_manager_block_of_several_kernel_blocks() -> None:
    upstream = MultiGroupBlockTable(4, 1024, 16, False, torch.device("npu:0"), [256], [128])
    table = adopt(upstream)[0]
    assert isinstance(table, AscendBlockTable)
    assert (table.block_size, table.blocks_per_kv_block) == (128, 2)
    table.add_row([3], 0)
    table.commit_block_table(1)
    assert on_device(table)[0][:2] == [6, 7]
    assert adopt(upstream)[0] is table
