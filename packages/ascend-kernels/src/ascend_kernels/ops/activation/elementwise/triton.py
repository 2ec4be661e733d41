"""Triton kernels: activations of one tensor or of gate and value side by side, tile by tile."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch
from ascend_kernels.ops.activation.elementwise.plan import plan_tiles
from ascend_kernels.target import current_target


@triton.jit
def activate(gate, KIND: tl.constexpr, ALPHA: tl.constexpr):
    if KIND == "silu":
        result = gate * tl.sigmoid(gate * ALPHA)
    elif KIND == "gelu":
        result = 0.5 * gate * (1.0 + tl.erf(gate * 0.7071067811865476))
    else:
        # tanh(u) = 2 sigmoid(2u) - 1, so 0.5 x (1 + tanh(u)) = x sigmoid(2u).
        result = gate * tl.sigmoid(1.5957691216057308 * (gate + 0.044715 * gate * gate * gate))
    return result


@triton.jit
def combine(
    gate, value, KIND: tl.constexpr, ALPHA: tl.constexpr, BIAS: tl.constexpr, LIMIT: tl.constexpr, STEP: tl.constexpr
):
    # Comparisons are false for NaN, so that it passes every limit and shows.
    if LIMIT > 0:
        value = tl.where(value > LIMIT, LIMIT, tl.where(value < -LIMIT, -LIMIT, value))
        if not STEP:
            gate = tl.where(gate > LIMIT, LIMIT, gate)
    active = activate(gate, KIND, ALPHA)
    if STEP:
        active = tl.where(active > LIMIT, LIMIT, active)
    return active * (value + BIAS)


@triton.jit
def load_pair(row, column, inside, COLUMNS: tl.constexpr):
    gate = tl.load(row + column, mask=inside, other=0.0)
    value = tl.load(row + COLUMNS + column, mask=inside, other=0.0)
    return gate.to(tl.float32), value.to(tl.float32)


@triton.jit(do_not_specialize=["rows"])
def activation_kernel(
    x,
    y,
    rows,
    x_stride,
    KIND: tl.constexpr,
    GATED: tl.constexpr,
    INTERLEAVED: tl.constexpr,
    ALPHA: tl.constexpr,
    BIAS: tl.constexpr,
    LIMIT: tl.constexpr,
    STEP: tl.constexpr,
    COLUMNS: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    COLUMN_TILES: tl.constexpr = (COLUMNS + BLOCK - 1) // BLOCK
    for tile in range(tl.program_id(0), tl.cdiv(rows, ROWS) * COLUMN_TILES, tl.num_programs(0)):
        row = (tile // COLUMN_TILES) * ROWS + tl.arange(0, ROWS)[:, None]
        column = (tile % COLUMN_TILES) * BLOCK + tl.arange(0, BLOCK)[None, :]
        inside = (row < rows) & (column < COLUMNS)
        x_row = x + row.to(tl.int64) * x_stride
        if GATED:
            if INTERLEAVED:
                # Read as one row and taken apart on chip: two strided reads would each fetch the whole row.
                both = (tile % COLUMN_TILES) * (2 * BLOCK) + tl.arange(0, 2 * BLOCK)[None, :]
                pairs = tl.load(x_row + both, mask=(row < rows) & (both < 2 * COLUMNS), other=0.0).to(tl.float32)
                gate, value = tl.split(tl.reshape(pairs, [ROWS, BLOCK, 2]))
            else:
                gate, value = load_pair(x_row, column, inside, COLUMNS)
            result = combine(gate, value, KIND, ALPHA, BIAS, LIMIT, STEP)
        else:
            result = activate(tl.load(x_row + column, mask=inside, other=0.0).to(tl.float32), KIND, ALPHA)
        tl.store(y + row.to(tl.int64) * COLUMNS + column, result.to(y.dtype.element_ty), mask=inside)


def as_rows(x: torch.Tensor) -> torch.Tensor:
    """``x[..., columns]`` as a matrix with neighbouring columns, without a copy if its strides allow."""
    if x.shape[-1] > 1 and x.stride(-1) != 1:
        x = x.contiguous()
    return x.reshape(-1, x.shape[-1])


def activate_rows(
    x: torch.Tensor,
    kind: str,
    *,
    gated: bool,
    interleaved: bool = False,
    alpha: float = 1.0,
    bias: float = 0.0,
    limit: float = 0.0,
    step: bool = False,
) -> torch.Tensor:
    """``kind(x)``, or ``kind(gate) * (value + bias)`` of the two halves of each row."""
    columns = x.shape[-1] // 2 if gated else x.shape[-1]
    y = torch.empty((*x.shape[:-1], columns), dtype=x.dtype, device=x.device)
    if y.numel() == 0:
        return y
    matrix = as_rows(x)
    rows = matrix.shape[0]
    # In fp32: gate, value and result; the error function's polynomial, or the halves of interleaved rows, beside them.
    value_bytes = 4 * (3 + gated) + (16 if kind == "gelu" else 0) + (72 if interleaved else 0)
    plan = plan_tiles(current_target(x.device), rows, columns, x.itemsize * (3 if gated else 2), value_bytes)
    launch(
        activation_kernel,
        (plan.programs,),
        matrix,
        y,
        rows,
        matrix.stride(0),
        KIND=kind,
        GATED=gated,
        INTERLEAVED=interleaved,
        ALPHA=alpha,
        BIAS=bias,
        LIMIT=limit,
        STEP=step,
        COLUMNS=columns,
        ROWS=plan.rows,
        BLOCK=plan.block,
        num_warps=plan.warps,
    )
    return y
