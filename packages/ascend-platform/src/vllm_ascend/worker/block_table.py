"""Block tables and slot mapping on the NPU.

The host writes page numbers into a row per request; the device copy is renewed only where rows changed. The slot of a
token is ``block_table[request, position // block_size] * block_size + position % block_size``, computed for the whole
batch by one operator of ascend-kernels.
"""

from __future__ import annotations

import torch
from vllm.v1.attention.backends.utils import PAD_SLOT_ID
from vllm.v1.worker.block_table import BlockTable, MultiGroupBlockTable

import ascend_kernels


class AscendBlockTable(BlockTable):
    """Block table of one KV cache group.

    Differences from the base class: slots are int32, as the vendor's cache-writing operators want them; a step copies
    only the span of rows that changed since the last copy; and slots come from a device operator instead of a Triton
    kernel that is launched once per request.
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        if self.pcp_world_size * self.dcp_world_size > 1:
            raise NotImplementedError("context parallelism has no slot mapping on Ascend yet; use sizes of 1")
        self.slot_mapping = self._make_buffer(self.max_num_batched_tokens, dtype=torch.int32)
        self._mark_clean()

    def _mark_clean(self) -> None:
        self._first_changed = self.max_num_reqs
        self._end_changed = 0

    def _mark(self, row: int) -> None:
        if row < self._first_changed:
            self._first_changed = row
        if row >= self._end_changed:
            self._end_changed = row + 1

    def append_row(self, block_ids: list[int], row_idx: int) -> None:
        if block_ids:
            super().append_row(block_ids, row_idx)
            self._mark(row_idx)

    def clear_row(self, row_idx: int) -> None:
        super().clear_row(row_idx)
        self._mark(row_idx)

    def move_row(self, src: int, tgt: int) -> None:
        super().move_row(src, tgt)
        self._mark(tgt)

    def swap_row(self, src: int, tgt: int) -> None:
        super().swap_row(src, tgt)
        self._mark(src)
        self._mark(tgt)

    def clear(self) -> None:
        super().clear()
        self._mark_clean()

    def commit_block_table(self, num_reqs: int) -> None:
        """Copy changed rows to the device; rows past ``num_reqs`` that changed are copied too and stay usable."""
        first, end = self._first_changed, self._end_changed
        if first < end:
            self.block_table.gpu[first:end].copy_(self.block_table.cpu[first:end], non_blocking=True)
            self._mark_clean()

    def compute_slot_mapping(self, num_reqs: int, query_start_loc: torch.Tensor, positions: torch.Tensor) -> None:
        """Write the slots of a batch, and -1 behind it.

        Args:
            num_reqs: requests in the batch.
            query_start_loc: int32 ``[num_reqs + 1]`` on the device.
            positions: int64 ``[tokens]`` on the device.
        """
        ascend_kernels.slot_mapping(
            query_start_loc, positions, self.block_table.gpu, self.block_size, self.slot_mapping.gpu, PAD_SLOT_ID
        )


def adopt(upstream: MultiGroupBlockTable) -> MultiGroupBlockTable:
    """``upstream`` with each group's (still empty) table replaced by an :class:`AscendBlockTable` of the same sizes."""
    upstream.block_tables = [
        table
        if isinstance(table, AscendBlockTable)
        else AscendBlockTable(
            table.block_size * table.blocks_per_kv_block,
            table.max_num_reqs,
            table.max_num_blocks_per_req // table.blocks_per_kv_block,
            table.max_num_batched_tokens,
            table.pin_memory,
            table.device,
            table.block_size,
            table.cp_kv_cache_interleave_size,
        )
        for table in upstream.block_tables
    ]
    return upstream
