"""Triton kernel: a program turns the heads of one token after another, in place."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch
from ascend_kernels.ops.rope.rope.plan import plan_rope
from ascend_kernels.target import current_target


@triton.jit
def load_row(table, table_axis, table_row, positions, position_axis, position_token, token, axis, lane, inside,
             HAS_POSITIONS: tl.constexpr):  # fmt: skip
    row = token
    if HAS_POSITIONS:
        row = tl.load(positions + axis * position_axis + token * position_token).to(tl.int64)
    return tl.load(table + axis * table_axis + row * table_row + lane, mask=inside, other=0.0).to(tl.float32)


@triton.jit
def angles_of(
    cos, sin, positions, token, table_axis, cos_row, sin_row, position_axis, position_token, lane,
    HAS_POSITIONS: tl.constexpr, SECTIONS: tl.constexpr, SECTION_T: tl.constexpr, SECTION_H: tl.constexpr,
    SECTION_W: tl.constexpr, HALF: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """A token's cosines and sines, fp32 ``[WIDTH]``."""
    inside = lane < HALF
    if SECTIONS == "none":
        c = load_row(cos, 0, cos_row, positions, 0, position_token, token, 0, lane, inside, HAS_POSITIONS)
        s = load_row(sin, 0, sin_row, positions, 0, position_token, token, 0, lane, inside, HAS_POSITIONS)
    else:
        if SECTIONS == "interleaved":
            high = (lane % 3 == 1) & (lane < 3 * SECTION_H)
            wide = (lane % 3 == 2) & (lane < 3 * SECTION_W)
        else:
            high = (lane >= SECTION_T) & (lane < SECTION_T + SECTION_H)
            wide = lane >= SECTION_T + SECTION_H
        time = inside & (high == 0) & (wide == 0)
        high = inside & high
        wide = inside & wide
        c = tl.zeros([WIDTH], dtype=tl.float32)
        s = tl.zeros([WIDTH], dtype=tl.float32)
        # Each lane belongs to one axis; the other two add zero.
        c += load_row(cos, table_axis, cos_row, positions, position_axis, position_token, token, 0, lane, time,
                      HAS_POSITIONS)  # fmt: skip
        s += load_row(sin, table_axis, sin_row, positions, position_axis, position_token, token, 0, lane, time,
                      HAS_POSITIONS)  # fmt: skip
        c += load_row(cos, table_axis, cos_row, positions, position_axis, position_token, token, 1, lane, high,
                      HAS_POSITIONS)  # fmt: skip
        s += load_row(sin, table_axis, sin_row, positions, position_axis, position_token, token, 1, lane, high,
                      HAS_POSITIONS)  # fmt: skip
        c += load_row(cos, table_axis, cos_row, positions, position_axis, position_token, token, 2, lane, wide,
                      HAS_POSITIONS)  # fmt: skip
        s += load_row(sin, table_axis, sin_row, positions, position_axis, position_token, token, 2, lane, wide,
                      HAS_POSITIONS)  # fmt: skip
    return c, s


@triton.jit
def turn(
    heads, head_stride, cos, sin, COUNT: tl.constexpr, TILE: tl.constexpr, HALF: tl.constexpr, WIDTH: tl.constexpr,
    INTERLEAVED: tl.constexpr,
):  # fmt: skip
    for start in range(0, COUNT, TILE):
        head = start + tl.arange(0, TILE)[:, None]
        if INTERLEAVED:
            # Read as one row and taken apart on chip: two strided reads would each fetch the whole row.
            lane = tl.arange(0, 2 * WIDTH)[None, :]
            inside = (head < COUNT) & (lane < 2 * HALF)
            row = heads + head * head_stride + lane
            pairs = tl.load(row, mask=inside, other=0.0).to(tl.float32)
            left, right = tl.split(tl.reshape(pairs, [TILE, WIDTH, 2]))
            turned = tl.join(left * cos - right * sin, right * cos + left * sin)
            tl.store(row, tl.reshape(turned, [TILE, 2 * WIDTH]).to(heads.dtype.element_ty), mask=inside)
        else:
            lane = tl.arange(0, WIDTH)[None, :]
            inside = (head < COUNT) & (lane < HALF)
            first = heads + head * head_stride + lane
            second = first + HALF
            left = tl.load(first, mask=inside, other=0.0).to(tl.float32)
            right = tl.load(second, mask=inside, other=0.0).to(tl.float32)
            tl.store(first, (left * cos - right * sin).to(heads.dtype.element_ty), mask=inside)
            tl.store(second, (right * cos + left * sin).to(heads.dtype.element_ty), mask=inside)


# Strides are specialised, because loads are wide only where the compiler knows that addresses are multiples of 16.
@triton.jit(do_not_specialize=["tokens", "position_axis", "position_token"])
def rope_kernel(
    query,
    key,
    cos,
    sin,
    positions,
    tokens,
    query_token,
    query_head,
    key_token,
    key_head,
    table_axis,
    cos_row,
    sin_row,
    position_axis,
    position_token,
    HAS_KEY: tl.constexpr,
    HAS_POSITIONS: tl.constexpr,
    INTERLEAVED: tl.constexpr,
    SECTIONS: tl.constexpr,
    SECTION_T: tl.constexpr,
    SECTION_H: tl.constexpr,
    SECTION_W: tl.constexpr,
    QUERY_HEADS: tl.constexpr,
    KEY_HEADS: tl.constexpr,
    QUERY_TILE: tl.constexpr,
    KEY_TILE: tl.constexpr,
    HALF: tl.constexpr,
    WIDTH: tl.constexpr,
):
    lane = tl.arange(0, WIDTH)
    for token in range(tl.program_id(0).to(tl.int64), tokens, tl.num_programs(0)):
        c, s = angles_of(
            cos, sin, positions, token, table_axis, cos_row, sin_row, position_axis, position_token, lane,
            HAS_POSITIONS, SECTIONS, SECTION_T, SECTION_H, SECTION_W, HALF, WIDTH,
        )  # fmt: skip
        turn(query + token * query_token, query_head, c[None, :], s[None, :], QUERY_HEADS, QUERY_TILE, HALF, WIDTH,
             INTERLEAVED)  # fmt: skip
        if HAS_KEY:
            turn(key + token * key_token, key_head, c[None, :], s[None, :], KEY_HEADS, KEY_TILE, HALF, WIDTH,
                 INTERLEAVED)  # fmt: skip


def rope_triton(
    query: torch.Tensor,
    key: torch.Tensor | None,
    cos: torch.Tensor,
    sin: torch.Tensor,
    positions: torch.Tensor | None,
    interleaved: bool,
    section: list[int],
    section_interleaved: bool,
) -> None:
    """See :func:`ascend_kernels.rope`."""
    tokens, query_heads = query.shape[0], query.shape[1]
    key_heads = 0 if key is None else key.shape[1]
    half = cos.shape[-1]
    if tokens == 0 or query_heads + key_heads == 0 or half == 0:
        return
    plan = plan_rope(current_target(query.device), tokens, query_heads, key_heads, half, query.itemsize, interleaved)
    axes = positions.stride(0) if positions is not None and positions.dim() == 2 else 0
    launch(
        rope_kernel,
        (plan.programs,),
        query,
        key,
        cos,
        sin,
        positions,
        tokens,
        query.stride(0),
        query.stride(1),
        0 if key is None else key.stride(0),
        0 if key is None else key.stride(1),
        cos.stride(0) if cos.dim() == 3 else 0,
        cos.stride(-2),
        sin.stride(-2),
        axes,
        0 if positions is None else positions.stride(-1),
        HAS_KEY=key is not None,
        HAS_POSITIONS=positions is not None,
        INTERLEAVED=interleaved,
        SECTIONS="none" if not section else "interleaved" if section_interleaved else "contiguous",
        SECTION_T=section[0] if section else 0,
        SECTION_H=section[1] if section else 0,
        SECTION_W=section[2] if section else 0,
        QUERY_HEADS=query_heads,
        KEY_HEADS=key_heads,
        QUERY_TILE=plan.query_heads,
        KEY_TILE=plan.key_heads,
        HALF=half,
        WIDTH=plan.half,
        num_warps=plan.warps,
    )
