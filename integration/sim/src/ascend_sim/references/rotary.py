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
    if input.dim() != 4:
        raise limits.refuse("npu_rotary_mul", "input.dim()", input.dim(), 4)
    values = input.float()
    if rotate is not None:
        rotated = values @ rotate.float()
    elif rotary_mode == "half":
        rotated = rotate_half(values)
    elif rotary_mode == "interleave":
        rotated = rotate_pairs(values)
    else:
        raise limits.refuse("npu_rotary_mul", "rotary_mode", repr(rotary_mode), "'half', 'interleave'")
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
    op, allowed = "npu_apply_rotary_pos_emb", limits.numbers("npu_apply_rotary_pos_emb")
    if layout not in allowed["layouts"]:
        raise limits.refuse(op, "layout", layout, allowed["layouts"])
    if rotary_mode not in allowed["rotary_modes"]:
        raise limits.refuse(op, "rotary_mode", rotary_mode, allowed["rotary_modes"])
    for name, tensor in (("query", query), ("key", key), ("cos", cos), ("sin", sin)):
        if tensor.shape[-1] not in allowed["head_sizes"]:
            raise limits.refuse(op, f"{name}.shape[-1]", tensor.shape[-1], allowed["head_sizes"])
        if tensor.dim() != len(layout):
            raise limits.refuse(op, f"{name}.dim()", tensor.dim(), f"{len(layout)} for layout {layout}")
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
    size = limits.numbers("npu_interleave_rope")["head_size"]
    for name, tensor in (("x", x), ("cos", cos), ("sin", sin)):
        if tensor.dim() != 4 or tensor.shape[-1] != size:
            raise limits.refuse("npu_interleave_rope", f"{name}.shape", list(tensor.shape), f"[B, N, S, {size}]")
    if cos.shape[1] != 1:
        raise limits.refuse("npu_interleave_rope", "cos.shape[1]", cos.shape[1], 1)
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


def _check_mrope(query: Tensor, cos_sin_cache: Tensor, sections: list[int] | None, cache_mode: str) -> None:
    op, allowed = "npu_mrope", limits.numbers("npu_mrope")
    rotary_dim = cos_sin_cache.shape[-1]
    single = query.dtype == torch.float32
    multiple = allowed["rotary_dim_multiple_float32" if single else "rotary_dim_multiple"]
    if rotary_dim % multiple:
        raise limits.refuse(op, "rotary_dim", rotary_dim, f"multiples of {multiple} for {query.dtype}")
    if cache_mode not in ("default", "interleave"):
        raise limits.refuse(op, "cache_mode", repr(cache_mode), "'default', 'interleave'")
    if sections is None:
        return
    if sections not in allowed["sections"]:
        raise limits.refuse(op, "mrope_section", sections, f"[0, 0, 0] or one of {allowed['sections']}")
    if sum(sections) != rotary_dim // 2:
        raise limits.refuse(op, "sum(mrope_section)", sum(sections), f"rotary_dim / 2 = {rotary_dim // 2}")


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
    _check_mrope(query, cos_sin_cache, sections, cache_mode or "default")
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
