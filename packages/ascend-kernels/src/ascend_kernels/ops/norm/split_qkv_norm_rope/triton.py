"""Triton kernel: query, key and value out of their common rows, normalised and turned on the way."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch, next_power_of_two
from ascend_kernels.ops.norm.split_qkv_norm_rope.plan import plan_split
from ascend_kernels.ops.rope.rope.triton import angles_of
from ascend_kernels.target import current_target


@triton.jit
def copy_heads(
    source, source_row, source_head, target, tokens, COUNT: tl.constexpr, TILE: tl.constexpr, SIZE: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    lane = tl.arange(0, BLOCK)[None, :]
    for start in range(0, COUNT, TILE):
        head = start + tl.arange(0, TILE)[:, None]
        inside = (head < COUNT) & (lane < SIZE)
        for token in range(tl.program_id(0).to(tl.int64), tokens, tl.num_programs(0)):
            values = tl.load(source + token * source_row + head * source_head + lane, mask=inside, other=0.0)
            tl.store(target + token * (COUNT * SIZE) + head * SIZE + lane, values, mask=inside)


@triton.jit
def load_factors(weight, bias, offset, inside, OFFSET: tl.constexpr, HAS_BIAS: tl.constexpr):
    factor = tl.load(weight + offset, mask=inside, other=0.0).to(tl.float32) + OFFSET
    shift = 0.0
    if HAS_BIAS:
        shift = tl.load(bias + offset, mask=inside, other=0.0).to(tl.float32)
    return factor, shift


# The weights of some heads stay on chip while the program's tokens pass; angles are read for each of them.
@triton.jit
def normalise_and_turn(
    source, source_row, source_head, target, weight, bias, means, cos, sin, positions, tokens, table_axis, cos_row,
    sin_row, position_axis, position_token, eps,
    HAS_POSITIONS: tl.constexpr, SECTIONS: tl.constexpr, SECTION_T: tl.constexpr, SECTION_H: tl.constexpr,
    SECTION_W: tl.constexpr, WHOLE_ROW: tl.constexpr, OFFSET: tl.constexpr, HAS_BIAS: tl.constexpr,
    COUNT: tl.constexpr, TILE: tl.constexpr, SIZE: tl.constexpr, HALF: tl.constexpr, WIDTH: tl.constexpr,
    REST: tl.constexpr,
):  # fmt: skip
    lane = tl.arange(0, WIDTH)
    behind = 2 * HALF + tl.arange(0, REST)[None, :]
    pair = lane[None, :]
    for start in range(0, COUNT, TILE):
        head = start + tl.arange(0, TILE)[:, None]
        turned = (head < COUNT) & (pair < HALF)
        untouched = (head < COUNT) & (behind < SIZE)
        if WHOLE_ROW:
            own = head * SIZE
            left_factor, left_shift = load_factors(weight, bias, own + pair, turned, OFFSET, HAS_BIAS)
            right_factor, right_shift = load_factors(weight, bias, own + HALF + pair, turned, OFFSET, HAS_BIAS)
            if SIZE > 2 * HALF:
                rest_factor, rest_shift = load_factors(weight, bias, own + behind, untouched, OFFSET, HAS_BIAS)
        else:
            left_factor, left_shift = load_factors(weight, bias, pair, pair < HALF, OFFSET, HAS_BIAS)
            right_factor, right_shift = load_factors(weight, bias, HALF + pair, pair < HALF, OFFSET, HAS_BIAS)
            if SIZE > 2 * HALF:
                rest_factor, rest_shift = load_factors(weight, bias, behind, behind < SIZE, OFFSET, HAS_BIAS)
        for token in range(tl.program_id(0).to(tl.int64), tokens, tl.num_programs(0)):
            c, s = angles_of(
                cos, sin, positions, token, table_axis, cos_row, sin_row, position_axis, position_token, lane,
                HAS_POSITIONS, SECTIONS, SECTION_T, SECTION_H, SECTION_W, HALF, WIDTH,
            )  # fmt: skip
            read = source + token * source_row + head * source_head
            write = target + token * (COUNT * SIZE) + head * SIZE
            left = tl.load(read + pair, mask=turned, other=0.0).to(tl.float32)
            right = tl.load(read + HALF + pair, mask=turned, other=0.0).to(tl.float32)
            if SIZE > 2 * HALF:
                rest = tl.load(read + behind, mask=untouched, other=0.0).to(tl.float32)
            if WHOLE_ROW:
                scale = tl.rsqrt(tl.load(means + token * 2) + eps)
            else:
                squares = tl.sum(left * left + right * right, axis=1)
                if SIZE > 2 * HALF:
                    squares += tl.sum(rest * rest, axis=1)
                scale = tl.rsqrt(squares / SIZE + eps)[:, None]
            left = left * scale * left_factor + left_shift
            right = right * scale * right_factor + right_shift
            first = left * c[None, :] - right * s[None, :]
            second = right * c[None, :] + left * s[None, :]
            tl.store(write + pair, first.to(target.dtype.element_ty), mask=turned)
            tl.store(write + HALF + pair, second.to(target.dtype.element_ty), mask=turned)
            if SIZE > 2 * HALF:
                rest = rest * scale * rest_factor + rest_shift
                tl.store(write + behind, rest.to(target.dtype.element_ty), mask=untouched)


@triton.jit(do_not_specialize=["tokens", "position_axis", "position_token"])
def split_qkv_norm_rope_kernel(
    qkv,
    q_weight,
    k_weight,
    q_bias,
    k_bias,
    means,
    cos,
    sin,
    positions,
    q,
    k,
    v,
    gate,
    tokens,
    qkv_row,
    table_axis,
    cos_row,
    sin_row,
    position_axis,
    position_token,
    eps,
    HAS_POSITIONS: tl.constexpr,
    SECTIONS: tl.constexpr,
    SECTION_T: tl.constexpr,
    SECTION_H: tl.constexpr,
    SECTION_W: tl.constexpr,
    WHOLE_ROW: tl.constexpr,
    OFFSET: tl.constexpr,
    Q_BIAS: tl.constexpr,
    K_BIAS: tl.constexpr,
    GATED: tl.constexpr,
    HEADS: tl.constexpr,
    KEY_HEADS: tl.constexpr,
    QUERY_TILE: tl.constexpr,
    KEY_TILE: tl.constexpr,
    SIZE: tl.constexpr,
    BLOCK: tl.constexpr,
    HALF: tl.constexpr,
    WIDTH: tl.constexpr,
    REST: tl.constexpr,
):
    query_step = SIZE
    if GATED:
        query_step = 2 * SIZE
    normalise_and_turn(
        qkv, qkv_row, query_step, q, q_weight, q_bias, means, cos, sin, positions, tokens, table_axis, cos_row,
        sin_row, position_axis, position_token, eps,
        HAS_POSITIONS, SECTIONS, SECTION_T, SECTION_H, SECTION_W, WHOLE_ROW, OFFSET, Q_BIAS,
        HEADS, QUERY_TILE, SIZE, HALF, WIDTH, REST,
    )  # fmt: skip
    k_mean = means
    if WHOLE_ROW:
        k_mean = means + 1
    keys = qkv + HEADS * query_step
    normalise_and_turn(
        keys, qkv_row, SIZE, k, k_weight, k_bias, k_mean, cos, sin, positions, tokens, table_axis, cos_row,
        sin_row, position_axis, position_token, eps,
        HAS_POSITIONS, SECTIONS, SECTION_T, SECTION_H, SECTION_W, WHOLE_ROW, OFFSET, K_BIAS,
        KEY_HEADS, KEY_TILE, SIZE, HALF, WIDTH, REST,
    )  # fmt: skip
    copy_heads(keys + KEY_HEADS * SIZE, qkv_row, SIZE, v, tokens, KEY_HEADS, KEY_TILE, SIZE, BLOCK)
    if GATED:
        copy_heads(qkv + SIZE, qkv_row, 2 * SIZE, gate, tokens, HEADS, QUERY_TILE, SIZE, BLOCK)


def split_qkv_norm_rope_triton(
    qkv: torch.Tensor,
    heads: int,
    key_heads: int,
    q_weight: torch.Tensor,
    k_weight: torch.Tensor,
    q_bias: torch.Tensor | None,
    k_bias: torch.Tensor | None,
    means: torch.Tensor | None,
    cos: torch.Tensor,
    sin: torch.Tensor,
    positions: torch.Tensor | None,
    eps: float,
    gemma: bool,
    gated: bool,
    section: list[int],
    section_interleaved: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.split_qkv_norm_rope`."""
    tokens = qkv.shape[0]
    size = qkv.shape[1] // (heads * (1 + gated) + 2 * key_heads)
    half = cos.shape[-1]
    q = qkv.new_empty(tokens, heads, size)
    k, v = qkv.new_empty(tokens, key_heads, size), qkv.new_empty(tokens, key_heads, size)
    gate = torch.empty_like(q) if gated else qkv.new_empty(0)
    plan = plan_split(current_target(qkv.device), tokens, heads, key_heads, size, half, qkv.itemsize)
    launch(
        split_qkv_norm_rope_kernel,
        (plan.programs,),
        qkv,
        q_weight,
        k_weight,
        q_bias,
        k_bias,
        means,
        cos,
        sin,
        positions,
        q,
        k,
        v,
        gate,
        tokens,
        qkv.stride(0),
        cos.stride(0) if cos.dim() == 3 else 0,
        cos.stride(-2),
        sin.stride(-2),
        positions.stride(0) if positions is not None and positions.dim() == 2 else 0,
        0 if positions is None else positions.stride(-1),
        eps,
        HAS_POSITIONS=positions is not None,
        SECTIONS="none" if not section else "interleaved" if section_interleaved else "contiguous",
        SECTION_T=section[0] if section else 0,
        SECTION_H=section[1] if section else 0,
        SECTION_W=section[2] if section else 0,
        WHOLE_ROW=means is not None,
        OFFSET=float(gemma),
        Q_BIAS=q_bias is not None,
        K_BIAS=k_bias is not None,
        GATED=gated,
        HEADS=heads,
        KEY_HEADS=key_heads,
        QUERY_TILE=plan.query_heads,
        KEY_TILE=plan.key_heads,
        SIZE=size,
        BLOCK=next_power_of_two(size),
        HALF=half,
        WIDTH=plan.half,
        REST=plan.rest,
        num_warps=plan.warps,
    )
    return q, k, v, gate
