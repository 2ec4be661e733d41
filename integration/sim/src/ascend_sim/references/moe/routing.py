# SPDX-License-Identifier: Apache-2.0
"""Sorting tokens by expert: the vendor's init_routing operators without quantisation; see :mod:`.routing_quant`.

A *slot* is one of the N * K choices of N tokens, numbered token by token.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import op_plugin_test, wheel_doc
from ascend_sim.references.undefined import undefined


@dataclass(frozen=True, slots=True)
class Slots:
    """Slots sorted by expert, slot number second.

    Args:
        order: Slots in that order, [N * K] int64; those of experts outside the range come last.
        experts: Their experts.
        available: How many belong to experts in the range.
        counts: Slots of each expert of the range, int64.
    """

    order: Tensor
    experts: Tensor
    available: int
    counts: Tensor


def sort_slots(expert_idx: Tensor, start: int, end: int) -> Slots:
    """Sort the slots of ``expert_idx`` [N, K] whose expert lies in [start, end)."""
    flat = expert_idx.reshape(-1)
    valid = (flat >= start) & (flat < end)
    experts, order = flat.masked_fill(~valid, torch.iinfo(flat.dtype).max).sort(stable=True)
    counts = torch.bincount(flat[valid] - start, minlength=end - start)
    return Slots(order, experts, int(counts.sum()), counts)


def gather_index(slots: Slots) -> Tensor:
    """Where each slot's row went, int32 [N * K]; -1 for slots outside the range."""
    index = torch.full_like(slots.order, -1, dtype=torch.int32)
    index[slots.order[: slots.available]] = torch.arange(slots.available, dtype=torch.int32)
    return index


def scatter_index(slots: Slots) -> Tensor:
    """Which slot each row came from, int32 [N * K]; undefined from ``available`` on."""
    index = undefined(slots.order.shape, torch.int32)
    index[: slots.available] = slots.order[: slots.available].int()
    return index


def token_counts(slots: Slots, kind: int, start: int, expert_num: int) -> Tensor:
    """Running sums (kind 0) or counts (1) of the range's experts, or (2) pairs [expert_num, 2] of those with tokens.

    Pairs end with (0, 0) if there is room; what follows is undefined.
    """
    if kind == 0:
        return slots.counts.cumsum(0)
    if kind == 1:
        return slots.counts
    if kind != 2:
        raise limits.refuse("npu_moe_init_routing_v2", "expert_tokens_num_type", kind, "0, 1 or 2")
    pairs = undefined((expert_num, 2), torch.int64)
    used = slots.counts.nonzero().flatten()
    pairs[: len(used)] = torch.stack((used + start, slots.counts[used]), 1)
    pairs[len(used) : len(used) + 1] = 0
    return pairs


@reference("npu::npu_moe_init_routing", source=op_plugin_test("test_npu_moe_init_routing"), grade=Grade.GOLDEN)
def npu_moe_init_routing(
    x: Tensor, row_idx: Tensor, expert_idx: Tensor, active_num: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Rows of ``x`` [N, H] sorted by expert, where each row went, and the sorted experts.

    ``row_idx`` [N, K] numbers the choices so that ``row_idx % N`` is the token; the second result is indexed by it. Of
    the rows only those of the first ``min(active_num, N) * K`` are returned.
    """
    rows, k = expert_idx.shape
    experts, order = expert_idx.reshape(-1).sort(stable=True)
    source = row_idx.reshape(-1)[order].long()
    expanded_row_idx = torch.empty_like(experts)
    expanded_row_idx[source] = torch.arange(len(source), dtype=experts.dtype)
    return x[source[: min(active_num, rows) * k] % rows], expanded_row_idx, experts


@reference(
    "npu::npu_moe_compute_expert_tokens", source=wheel_doc("npu_moe_compute_expert_tokens"), grade=Grade.DOCUMENTED
)
def npu_moe_compute_expert_tokens(sorted_expert_for_source_row: Tensor, num_expert: int) -> Tensor:
    """For each expert the number of rows up to and including its last, int32 [num_expert], in a sorted list."""
    experts = torch.arange(num_expert, dtype=sorted_expert_for_source_row.dtype)
    return torch.searchsorted(sorted_expert_for_source_row, experts, right=True, out_int32=True)
