# SPDX-License-Identifier: Apache-2.0
"""Rotary position embedding. Products and sums are float32 and round once to the input dtype."""

from __future__ import annotations

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import cann_doc, op_plugin_test, wheel_doc


def rotate_half(x: Tensor) -> Tensor:
    """``(-x2, x1)`` of the halves of the last dimension."""
    first, second = x.chunk(2, -1)
    return torch.cat((-second, first), -1)


def rotate_pairs(x: Tensor) -> Tensor:
    """``(-x1, x0, -x3, x2, ...)`` of neighbouring elements of the last dimension."""
    return torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)


@reference("npu::npu_rotary_mul", source=wheel_doc("npu_rotary_mul"), grade=Grade.DOCUMENTED)
def npu_rotary_mul(
    input: Tensor, r1: Tensor, r2: Tensor, rotary_mode: str = "half", rotate: Tensor | None = None
) -> Tensor:
    """``r1 * input + r2 * rotated``; rotated is by ``rotary_mode`` (half, interleave) or ``input @ rotate``.

    ``input`` is 4-D; ``r1`` (cos) and ``r2`` (sin) broadcast against it.
    """
    values = input.float()
    if rotate is not None:
        rotated = values @ rotate.float()
    elif rotary_mode == "half":
        rotated = rotate_half(values)
    elif rotary_mode == "interleave":
        rotated = rotate_pairs(values)
    else:
        raise limits.not_simulated("npu_rotary_mul", "rotary_mode", repr(rotary_mode))
    return values.mul(r1).add_(rotated.mul_(r2)).to(input.dtype)


@reference(
    "npu::npu_apply_rotary_pos_emb",
    source=f"{op_plugin_test('test_npu_apply_rotary_pos_emb')}; {wheel_doc('npu_apply_rotary_pos_emb')}",
    grade=Grade.GOLDEN,
)
def npu_apply_rotary_pos_emb(
    query: Tensor, key: Tensor, cos: Tensor, sin: Tensor, layout: str = "BSND", rotary_mode: str = "half"
) -> tuple[Tensor, Tensor]:
    """Rotate ``query`` and ``key`` in place by halves and return them.

    Shapes: query [B, S, N, D] or [T, N, D], key the same with its own N, cos and sin with N = 1; D is 64 or 128.
    """
    if layout not in ("BSND", "TND") or rotary_mode != "half" or cos.shape[-1] != query.shape[-1]:
        raise limits.not_simulated("npu_apply_rotary_pos_emb", "layout, rotary_mode, cos", (layout, rotary_mode))
    for tensor in (query, key):
        values = tensor.float()
        tensor.copy_(values * cos + rotate_half(values) * sin)
    return query, key


@reference(
    "npu::npu_interleave_rope",
    source=cann_doc("ops-transformer", "posembedding/interleave_rope/README.md"),
    grade=Grade.DOCUMENTED,
)
def npu_interleave_rope(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Reorder pairs to halves (even elements, then odd), then rotate by halves; the result stays in halves.

    Shapes: x [B, N, S, 64]; cos and sin [B, 1, S or 1, 64].
    """
    halves = torch.cat((x[..., ::2], x[..., 1::2]), -1).float()
    return (halves * cos + rotate_half(halves) * sin).to(x.dtype)


def _rotate_rows(x: Tensor, cos: Tensor, sin: Tensor, head_size: int, neox: bool) -> Tensor:
    """Rotate the first ``2 * cos.shape[-1]`` elements of every head; cos and sin are [T, 1, rotary_dim / 2] float32."""
    heads = x.reshape(cos.shape[0], -1, head_size)
    size = 2 * cos.shape[-1]
    turned = heads[..., :size].float()
    first, second = turned.chunk(2, -1) if neox else (turned[..., ::2], turned[..., 1::2])
    parts = (first * cos - second * sin, second * cos + first * sin)
    out = torch.cat(parts, -1) if neox else torch.stack(parts, -1).flatten(-2)
    out = out.to(x.dtype)
    if size < head_size:
        out = torch.cat((out, heads[..., size:]), -1)
    return out.reshape(x.shape)


def _merge_sections(rows: Tensor, sections: list[int], cache_mode: str) -> Tensor:
    """One row per token from the temporal, height and width rows [3, T, rotary_dim / 2]."""
    if cache_mode == "default":
        return torch.cat([part[i] for i, part in enumerate(rows.split(sections, -1))], -1)
    merged = rows[0].clone()
    for axis in (1, 2):
        columns = slice(axis, 3 * sections[axis], 3)
        merged[..., columns] = rows[axis][..., columns]
    return merged


@reference(
    "npu::npu_mrope",
    source=f"{op_plugin_test('test_npu_mrope')}; "
    + cann_doc("ops-transformer", "posembedding/rope_with_sin_cos_cache/docs/aclnnRopeWithSinCosCache.md"),
    grade=Grade.GOLDEN,
)
def npu_mrope(
    positions: Tensor,
    query: Tensor,
    key: Tensor,
    cos_sin_cache: Tensor,
    head_size: int,
    *,
    mrope_section: list[int] | None = None,
    rotary_mode: str | None = "half",
    cache_mode: str | None = "default",
) -> tuple[Tensor, Tensor]:
    """Rotate ``query`` [T, N * head_size] and ``key`` by rows of ``cos_sin_cache`` [max_positions, rotary_dim].

    ``positions`` is [T], or [3, T] (temporal, height, width) together with ``mrope_section``, whose parts say how many
    of the rotary_dim / 2 angles come from each: in that order (``cache_mode`` default) or in turns (interleave).
    """
    sections = list(mrope_section) if mrope_section is not None and any(mrope_section) else None
    if sections is not None and len(sections) != 3:
        raise limits.not_simulated("npu_mrope", "mrope_section", sections)
    cos, sin = cos_sin_cache.index_select(0, positions.flatten()).float().chunk(2, -1)
    if positions.dim() == 2:
        if sections is None:
            raise limits.refuse("npu_mrope", "mrope_section", mrope_section, "a section for positions [3, T]")
        shape = (3, -1, cos.shape[-1])
        cos = _merge_sections(cos.reshape(shape), sections, cache_mode or "default")
        sin = _merge_sections(sin.reshape(shape), sections, cache_mode or "default")
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    neox = rotary_mode != "interleave"
    return _rotate_rows(query, cos, sin, head_size, neox), _rotate_rows(key, cos, sin, head_size, neox)


@reference("atb::_npu_rotary_embedding", source=op_plugin_test("test_atb_rope"), grade=Grade.GOLDEN)
def _npu_rotary_embedding(
    positions: Tensor, query: Tensor, key: Tensor, head_size: int, cos_sin_cache: Tensor, is_neox_style: bool
) -> None:
    """Rotate ``query`` [T, N * head_size] and ``key`` in place by rows of ``cos_sin_cache`` at ``positions`` [T]."""
    cos, sin = cos_sin_cache.index_select(0, positions.flatten()).float().unsqueeze(1).chunk(2, -1)
    for tensor in (query, key):
        tensor.copy_(_rotate_rows(tensor, cos, sin, head_size, is_neox_style))
