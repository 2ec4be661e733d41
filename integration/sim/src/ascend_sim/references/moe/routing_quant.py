# SPDX-License-Identifier: Apache-2.0
"""Sorting tokens by expert and quantising them on the way; :mod:`.routing` explains slots."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.moe.routing import Slots, gather_index, scatter_index, sort_slots, token_counts
from ascend_sim.references.quant.dynamic import per_token
from ascend_sim.references.quant.integers import saturate
from ascend_sim.references.quant.microscale import E4M3, E5M2, quantise
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import cann_doc
from ascend_sim.references.undefined import undefined

_NONE, _STATIC, _DYNAMIC = -1, 0, 1
_MX = {2: E5M2, 3: E4M3}


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where rows go.

    Args:
        slots: The slots that have a row, in order of their rows.
        experts: Their experts, counted from the start of the range.
        rows: Their rows.
        shape: Leading dimensions of the result, [rows] or [expert_num, capacity].
    """

    slots: Tensor
    experts: Tensor
    rows: Tensor
    shape: tuple[int, ...]

    def place(self, values: Tensor, *, padded: bool, shape: tuple[int, ...] | None = None) -> Tensor:
        """``values`` at their rows; the others are zeros if ``padded`` and else undefined."""
        leading = self.shape if shape is None else shape
        full = (*leading, *values.shape[1:])
        out = values.new_zeros(full) if padded else undefined(full, values.dtype)
        out.view(-1, *values.shape[1:])[self.rows] = values
        return out


def _dropless(slots: Slots, start: int, active: int) -> _Layout:
    total = len(slots.order)
    rows = min(active, total) if active > 0 else total
    used = min(rows, slots.available)
    return _Layout(slots.order[:used], slots.experts[:used] - start, torch.arange(used), (rows,))


def _by_capacity(slots: Slots, experts: int, capacity: int) -> _Layout:
    """The first ``capacity`` slots of each expert."""
    chosen = slots.experts[: slots.available].long()
    first = slots.counts.cumsum(0) - slots.counts
    place = torch.arange(slots.available) - first[chosen]
    kept = place < capacity
    rows = chosen * capacity + place
    return _Layout(slots.order[: slots.available][kept], chosen[kept], rows[kept], (experts, capacity))


def _index_by_capacity(layout: _Layout, total: int) -> Tensor:
    index = torch.full((total,), -1, dtype=torch.int32)
    index[layout.slots] = layout.rows.int()
    return index


def _quantised(
    op: str, x: Tensor, layout: _Layout, k: int, mode: int, scale: Tensor | None, offset: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """Rows of x and, if dynamic, their scales."""
    values = x[layout.slots // k]
    if mode == _NONE:
        return values, None if scale is None else scale[layout.slots // k]
    if mode in _MX:
        elements, scales = quantise(values.float(), _MX[mode])
        return elements, scales.flatten(1)
    if mode == _DYNAMIC:
        smoothed = values.float()
        if scale is not None:
            smoothed = smoothed * (scale[layout.experts] if len(scale) > 1 else scale)
        return per_token(smoothed)
    if mode != _STATIC:
        raise limits.not_simulated(op, "quant_mode", mode)
    if scale is None or offset is None:
        raise limits.refuse(op, "scale, offset", None, "tensors with quant_mode 0")
    half = (values.float() * scale + offset).half()
    return saturate(half.float(), torch.int8), None


@reference(
    "npu::npu_moe_init_routing_v2",
    source=cann_doc("ops-transformer", "moe/moe_init_routing_v3/docs/aclnnMoeInitRoutingV3.md")
    + "; moe/moe_init_routing_v3/tests/assets/golden.py",
    grade=Grade.GOLDEN,
    note="quant_mode -1, 0, 1, 2 and 3; static values are rounded to float16 before they become int8",
)
def npu_moe_init_routing_v2(
    x: Tensor,
    expert_idx: Tensor,
    *,
    scale: Tensor | None = None,
    offset: Tensor | None = None,
    active_num: int = -1,
    expert_capacity: int = -1,
    expert_num: int = -1,
    drop_pad_mode: int = 0,
    expert_tokens_num_type: int = 0,
    expert_tokens_num_flag: bool = False,
    quant_mode: int = -1,
    active_expert_range: list[int] = [],  # noqa: B006  the default of the schema; not changed
    row_idx_type: int = 0,
    x_dtype: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Rows of x [N, H] sorted by expert, an index between slots and rows, tokens by expert and the rows' scales.

    Args:
        scale: One a token if not quantising, one if static, factors [1 or experts, H] if dynamic.
        active_expert_range: Experts outside have no rows; all by default.
        drop_pad_mode: 1 gives each expert ``expert_capacity`` rows, padded with zeros: [expert_num, capacity, H].
        row_idx_type: 0: the row of each slot, -1 if none; 1: the slot of each row.
    """
    op = "npu_moe_init_routing_v2"
    if x_dtype is not None:
        raise limits.not_simulated(op, "x_dtype", x_dtype)
    start, end = active_expert_range or (0, expert_num)
    k = expert_idx.shape[1]
    slots = sort_slots(expert_idx, start, end)
    padded = drop_pad_mode == 1
    if padded and (row_idx_type or (start, end) != (0, expert_num) or quant_mode in _MX):
        raise limits.not_simulated(op, "drop_pad_mode, row_idx_type", (drop_pad_mode, row_idx_type))
    layout = _by_capacity(slots, expert_num, expert_capacity) if padded else _dropless(slots, start, active_num)
    values, scales = _quantised(op, x, layout, k, quant_mode, scale, offset)
    if padded:
        index = _index_by_capacity(layout, len(slots.order))
    else:
        index = scatter_index(slots) if row_idx_type else gather_index(slots)
    flat = (layout.shape[0] * layout.shape[1],) if padded else layout.shape
    if quant_mode == _STATIC:
        out_scale = undefined((), torch.float32)
    elif scales is None:
        out_scale = undefined(flat, torch.float32)
    else:
        out_scale = layout.place(scales, padded=padded, shape=flat)
    tokens = (
        token_counts(slots, expert_tokens_num_type, start, expert_num)
        if expert_tokens_num_flag
        else undefined((), torch.int64)
    )
    out_scale = out_scale.view(torch.float8_e8m0fnu) if quant_mode in _MX else out_scale
    return layout.place(values, padded=padded), index, tokens, out_scale


@reference(
    "npu::npu_moe_init_routing_quant",
    source=cann_doc("ops-transformer", "moe/moe_init_routing_quant_v2/docs/aclnnMoeInitRoutingQuantV2.md")
    + "; moe/moe_init_routing_quant_v2/tests/assets/golden.py",
    grade=Grade.GOLDEN,
    note="results that were not asked for are empty",
)
def npu_moe_init_routing_quant(
    x: Tensor,
    expert_idx: Tensor,
    *,
    scale: Tensor | None = None,
    offset: Tensor | None = None,
    active_num: int = 1024,
    expert_capacity: int = 0,
    expert_num: int = 256,
    drop_pad_mode: int = 0,
    expert_tokens_num_mode: int = 0,
    expert_tokens_before_capacity_flag: bool = False,
    quant_mode: int = 1,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """int8 rows, the row of each slot, tokens by expert (1: running sums, 2: counts), those before dropping, scales."""
    op = "npu_moe_init_routing_quant"
    if quant_mode not in (_STATIC, _DYNAMIC):
        raise limits.refuse(op, "quant_mode", quant_mode, "0 or 1")
    slots = sort_slots(expert_idx, 0, expert_num)
    padded = drop_pad_mode == 1
    layout = _by_capacity(slots, expert_num, expert_capacity) if padded else _dropless(slots, 0, active_num)
    values, scales = _quantised(op, x, layout, expert_idx.shape[1], quant_mode, scale, offset)
    nothing = torch.empty(0, dtype=torch.int32)
    tokens, before = nothing, nothing.clone()
    if not padded and expert_tokens_num_mode:
        tokens = (slots.counts.cumsum(0) if expert_tokens_num_mode == 1 else slots.counts).int()
    if padded and expert_tokens_before_capacity_flag:
        before = slots.counts.int()
    flat = (layout.shape[0] * layout.shape[1],) if padded else layout.shape
    index = _index_by_capacity(layout, len(slots.order)) if padded else gather_index(slots)
    out_scale = torch.empty(0) if scales is None else layout.place(scales, padded=padded, shape=flat)
    return layout.place(values, padded=padded), index, tokens, before, out_scale
