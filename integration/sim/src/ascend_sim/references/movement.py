# SPDX-License-Identifier: Apache-2.0
"""Moving tokens and blocks of memory: updates at an offset, transposition, gathering rows."""

from __future__ import annotations

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.kv_cache import write_slots
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import cann_doc, wheel_doc


@reference("npu::scatter_update_", source=cann_doc("ops-nn", "index/scatter/README.md"), grade=Grade.DOCUMENTED)
def scatter_update_(input: Tensor, indices: Tensor, updates: Tensor, axis: int) -> Tensor:
    """Write ``updates[i]`` into ``input[r]`` from position p of ``axis`` on.

    (r, p) is ``indices[i]`` of indices [n, 2], and (i, indices[i]) of indices [n].
    """
    op, axis = "scatter_update_", axis % input.dim()
    if axis == 0:
        raise limits.refuse(op, "axis", 0, "dimensions after the first")
    if indices.dim() > 2 or (indices.dim() == 2 and indices.shape[1] != 2):
        raise limits.refuse(op, "indices.shape", list(indices.shape), "[n] or [n, 2]")
    rest = [n for d, n in enumerate(input.shape) if d not in (0, axis)]
    if rest != [n for d, n in enumerate(updates.shape) if d not in (0, axis)] or updates.dim() != input.dim():
        raise limits.refuse(op, "updates.shape", list(updates.shape), f"those of input {list(input.shape)} but for two")
    index = indices.reshape(-1) if indices.dim() < 2 else indices[:, 1]
    rows = torch.arange(index.numel()) if indices.dim() < 2 else indices[:, 0].long()
    columns = index.long()[:, None] + torch.arange(updates.shape[axis])
    _check_within(op, rows, input.shape[0])
    _check_within(op, columns, input.shape[axis])
    input.movedim(axis, 1)[rows[:, None], columns] = updates.movedim(axis, 1)
    return input


def _check_within(op: str, index: Tensor, size: int) -> None:
    """The hardware does not check and writes elsewhere."""
    if index.numel() and (int(index.min()) < 0 or int(index.max()) >= size):
        raise limits.refuse(op, "indices", f"to reach {int(index.min())} to {int(index.max())}", f"0 to {size - 1}")


@reference("npu::scatter_update", source=cann_doc("ops-nn", "index/scatter/README.md"), grade=Grade.DOCUMENTED)
def scatter_update(input: Tensor, indices: Tensor, updates: Tensor, axis: int) -> Tensor:
    """:func:`scatter_update_` on a copy of ``input``."""
    return scatter_update_(input.clone(memory_format=torch.contiguous_format), indices, updates, axis)


_LIST = cann_doc("ops-nn", "index/scatter_list/docs/aclnnScatterList.md")


@reference("npu::npu_scatter_list_", source=_LIST, grade=Grade.DOCUMENTED)
def npu_scatter_list_(
    input: list[Tensor],
    indices: Tensor,
    updates: Tensor,
    mask: Tensor | None = None,
    reduce: str = "update",
    axis: int = -2,
) -> None:
    """Write ``updates[i]`` into ``input[i]`` from position ``indices[i]`` of ``axis`` of ``updates`` on.

    Indices [B, 2] also give how many positions; a ``mask`` of 0 skips a tensor.
    """
    op = "npu_scatter_list_"
    if reduce != "update":
        raise limits.refuse(op, "reduce", repr(reduce), "'update'")
    axis = axis % updates.dim() - 1
    if axis < 0:
        raise limits.refuse(op, "axis", 0, "dimensions after the first of updates")
    if len(input) != updates.shape[0] or indices.shape[0] != len(input):
        raise limits.refuse(op, "len(input)", len(input), f"{updates.shape[0]}, as of updates and indices")
    places = indices.tolist() if indices.dim() == 2 else [(at, updates.shape[axis + 1]) for at in indices.tolist()]
    written = [True] * len(input) if mask is None else mask.bool().tolist()
    for target, values, (start, length), write in zip(input, updates, places, written, strict=True):
        if not write or not length:
            continue
        if start < 0 or start + length > target.shape[axis] or length > values.shape[axis]:
            raise limits.refuse(
                op, "indices", f"to reach {start} to {start + length - 1}", f"0 to {target.shape[axis] - 1}"
            )
        target.narrow(axis, start, length).copy_(values.narrow(axis, 0, length))


@reference("npu::npu_scatter_list", source=_LIST, grade=Grade.DOCUMENTED)
def npu_scatter_list(
    input: list[Tensor],
    indices: Tensor,
    updates: Tensor,
    mask: Tensor | None = None,
    reduce: str = "update",
    axis: int = -2,
) -> list[Tensor]:
    """:func:`npu_scatter_list_` on copies."""
    out = [tensor.clone(memory_format=torch.contiguous_format) for tensor in input]
    npu_scatter_list_(out, indices, updates, mask, reduce, axis)
    return out


@reference(
    "npu::npu_scatter_pa_cache.value",
    source=cann_doc("ops-transformer", "attention/scatter_pa_cache/README.md"),
    grade=Grade.DOCUMENTED,
    note="slots below 0 are skipped, as by the vendor's other operators; the page does not say; no compressed forms",
)
def npu_scatter_pa_cache(
    key: Tensor,
    slot_mapping: Tensor,
    *,
    compress_lens: Tensor | None = None,
    compress_seq_offsets: Tensor | None = None,
    seq_lens: Tensor | None = None,
    key_cache: Tensor,
) -> Tensor:
    """Write key [T, heads, size] to ``slot_mapping`` [T] of ``key_cache`` [blocks, block_size, heads, size]."""
    op = "npu_scatter_pa_cache"
    for name, given in (("compress_lens", compress_lens), ("compress_seq_offsets", compress_seq_offsets)):
        if given is not None:
            raise limits.not_simulated(op, name, "given")
    if key.dim() != 3 or key_cache.shape[2:] != key.shape[1:]:
        raise limits.refuse(
            op, "key_cache.shape", list(key_cache.shape), f"[blocks, block_size, {list(key.shape[1:])}]"
        )
    write_slots(op, key_cache, key, slot_mapping, fractal=False)
    return key_cache


@reference("npu::npu_transpose", source=wheel_doc("npu_transpose"), grade=Grade.DOCUMENTED)
def npu_transpose(input: Tensor, perm: list[int], require_contiguous: bool = True) -> Tensor:
    """``input`` with its dimensions permuted, contiguous."""
    return input.permute(perm).clone(memory_format=torch.contiguous_format)


@reference("npu::npu_transpose.out", source=wheel_doc("npu_transpose"), grade=Grade.DOCUMENTED)
def npu_transpose_out(input: Tensor, perm: list[int], require_contiguous: bool = True, *, out: Tensor) -> Tensor:
    """:func:`npu_transpose` into ``out``."""
    return out.copy_(input.permute(perm))


@reference("npu::npu_confusion_transpose", source=wheel_doc("npu_confusion_transpose"), grade=Grade.DOCUMENTED)
def npu_confusion_transpose(input: Tensor, perm: list[int], shape: list[int], transpose_first: bool) -> Tensor:
    """Permute then reshape, or with ``transpose_first`` False the other way round."""
    if transpose_first:
        return input.permute(perm).reshape(shape).clone(memory_format=torch.contiguous_format)
    return input.reshape(shape).permute(perm).clone(memory_format=torch.contiguous_format)


@reference("npu::npu_reshape", source=wheel_doc("npu_reshape"), grade=Grade.DOCUMENTED)
def npu_reshape(input: Tensor, shape: list[int], can_refresh: bool = False) -> Tensor:
    """A copy of ``input`` in another shape."""
    return input.reshape(shape).clone(memory_format=torch.contiguous_format)


@reference("npu::npu_reshape.out", source=wheel_doc("npu_reshape"), grade=Grade.DOCUMENTED)
def npu_reshape_out(input: Tensor, shape: list[int], can_refresh: bool = False, *, out: Tensor) -> Tensor:
    """:func:`npu_reshape` into ``out``."""
    return out.copy_(input.reshape(shape))


@reference("npu::npu_gather_sparse_index", source=wheel_doc("npu_gather_sparse_index"), grade=Grade.DOCUMENTED)
def npu_gather_sparse_index(input: Tensor, index: Tensor) -> Tensor:
    """Rows ``input[index]``."""
    _check_within("npu_gather_sparse_index", index, input.shape[0])
    return input[index.long()]


@reference("npu::npu_prefetch", source=wheel_doc("npu_prefetch"), grade=Grade.DOCUMENTED)
def npu_prefetch(input: Tensor, dependency: Tensor | None, max_size: int, offset: int = 0) -> None:
    """Nothing: the simulation has no cache to load into."""
