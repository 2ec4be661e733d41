"""Triton kernel: inverses of unit lower triangular blocks, by merging inverses of halves."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch
from ascend_kernels.ops.fla.solve_tril.plan import SolveTrilPlan, plan_solve_tril
from ascend_kernels.target import current_target


@triton.jit
def merged(inverse, strict, row, column, FIRST: tl.constexpr, LEVELS: tl.constexpr, PRECISION: tl.constexpr):
    """Inverses of blocks of ``2**LEVELS`` from those of blocks of ``2**FIRST``: X - X L X for two neighbours."""
    for level in tl.static_range(FIRST, LEVELS):
        coupling = (row // (2 << level) == column // (2 << level)) & (row // (1 << level) > column // (1 << level))
        if PRECISION == "fp16":
            # Entries of the inverse are at most 1 for normalised keys, and half precision has tf32's ten bits.
            narrow = inverse.to(tl.float16)
            coupled = tl.dot(tl.where(coupling, strict, 0.0).to(tl.float16), narrow)
            inverse -= tl.dot(narrow, coupled.to(tl.float16))
        else:
            coupled = tl.dot(tl.where(coupling, strict, 0.0), inverse, input_precision=PRECISION)
            inverse -= tl.dot(inverse, coupled, input_precision=PRECISION)
    return inverse


@triton.jit
def pairs_inverse(strict, row, column):
    """Inverses of the diagonal blocks of two rows."""
    coupling = (row // 2 == column // 2) & (row > column)
    return tl.where(row == column, 1.0, 0.0) - tl.where(coupling, strict, 0.0)


@triton.jit
def unit_lower_inverse(strict, SIZE: tl.constexpr, LEVELS: tl.constexpr, PRECISION: tl.constexpr):
    """The inverse of I + strict, where strict is strictly lower triangular [SIZE, SIZE] in float32, SIZE = 2**LEVELS.

    With X the inverses of the diagonal blocks of one size and L what couples two neighbours, the inverses of the blocks
    of twice the size are X - X L X. Unlike a power series this loses nothing when keys resemble each other, and unlike
    substitution it takes whole tiles only, with no row ever picked out. In half precision the diagonal blocks of 16
    rows are inverted beside each other first, by products of their size.
    """
    row = tl.arange(0, SIZE)[:, None]
    column = tl.arange(0, SIZE)[None, :]
    if PRECISION == "fp16" and SIZE > 16:
        blocks: tl.constexpr = SIZE // 16
        block = tl.arange(0, blocks)
        diagonal = block[:, None, None, None] == block[None, None, :, None]
        tiles = tl.reshape(strict, [blocks, 16, blocks, 16])
        small = tl.sum(tl.where(diagonal, tiles, 0.0), axis=2)
        small_row = tl.arange(0, 16)[None, :, None]
        small_column = tl.arange(0, 16)[None, None, :]
        inverse = merged(pairs_inverse(small, small_row, small_column), small, small_row, small_column, 1, 4, PRECISION)
        tiles = tl.broadcast_to(tl.expand_dims(inverse, 2), [blocks, 16, blocks, 16])
        inverse = tl.reshape(tl.where(diagonal, tiles, 0.0), [SIZE, SIZE])
        result = merged(inverse, strict, row, column, 4, LEVELS, PRECISION)
    else:
        result = merged(pairs_inverse(strict, row, column), strict, row, column, 1, LEVELS, PRECISION)
    return result


@triton.jit(do_not_specialize=["tasks", "programs"])
def solve_tril_kernel(
    matrix,
    strength,
    inverse,
    first,
    end,
    tasks,
    programs,
    SCALED: tl.constexpr,
    HEADS: tl.constexpr,
    CHUNK: tl.constexpr,
    LEVELS: tl.constexpr,
    PRECISION: tl.constexpr,
):
    lane = tl.arange(0, CHUNK)
    for task in tl.range(tl.program_id(0), tasks, programs, num_stages=1):
        chunk = task // HEADS
        head = task - chunk * HEADS
        begin = tl.load(first + chunk)
        length = tl.load(end + chunk) - begin
        if length > 0:
            base = (begin.to(tl.int64) * HEADS + head) * CHUNK
            offsets = lane[:, None] * (HEADS * CHUNK) + lane[None, :]
            inside = lane[:, None] < length
            strict = tl.load(matrix + base + offsets, mask=inside & (lane[:, None] > lane[None, :]), other=0.0)
            result = unit_lower_inverse(strict.to(tl.float32), CHUNK, LEVELS, PRECISION)
            if SCALED:
                factor = strength + begin.to(tl.int64) * HEADS + head + lane * HEADS
                result *= tl.load(factor, mask=lane < length, other=0.0).to(tl.float32)[None, :]
            tl.store(inverse + base + offsets, result.to(inverse.dtype.element_ty), mask=inside)


def launch_solve_tril(
    matrix: torch.Tensor,
    strength: torch.Tensor | None,
    inverse: torch.Tensor,
    first: torch.Tensor,
    end: torch.Tensor,
    plan: SolveTrilPlan | None = None,
) -> None:
    """Write inverses, their columns multiplied by ``strength`` ``[tokens, heads]`` if that is given."""
    _, heads, chunk = matrix.shape
    tasks = first.shape[0] * heads
    if plan is None:
        plan = plan_solve_tril(tasks, inverse.dtype, current_target(matrix.device))
    launch(
        solve_tril_kernel,
        (plan.programs,),
        matrix,
        matrix if strength is None else strength,
        inverse,
        first,
        end,
        tasks,
        plan.programs,
        SCALED=strength is not None,
        HEADS=heads,
        CHUNK=chunk,
        LEVELS=chunk.bit_length() - 1,
        PRECISION=plan.precision,
        num_warps=plan.warps,
    )


def solve_tril_triton(matrix: torch.Tensor, first: torch.Tensor, end: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """See :func:`ascend_kernels.solve_tril`."""
    matrix = matrix.contiguous()
    inverse = torch.empty_like(matrix, dtype=dtype)
    launch_solve_tril(matrix, None, inverse, first, end)
    return inverse
