"""Triton kernel: one pass over a row."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch
from ascend_kernels.ops.sampling.rows.plan import plan_vocab
from ascend_kernels.ops.sampling.rows.triton import as_rows
from ascend_kernels.target import current_target

LANE_BYTES = 32
"""Per column: two buffers of the probabilities, the sum, and what one step computes."""


@triton.jit(do_not_specialize=["rows"])
def entropy_kernel(probs, result, rows, columns, probs_stride, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    for row in range(tl.program_id(0).to(tl.int64), rows, tl.num_programs(0)):
        total = tl.zeros([BLOCK], dtype=tl.float32)
        for start in range(0, columns, BLOCK):
            column = start + lane
            value = tl.load(probs + row * probs_stride + column, mask=column < columns, other=0.0).to(tl.float32)
            total -= value * tl.log(value + 1e-10)
        tl.store(result + row, tl.sum(total, axis=0))


def entropy_triton(probs: torch.Tensor) -> torch.Tensor:
    """See :func:`ascend_kernels.entropy`."""
    count, columns = probs.shape
    result = probs.new_empty(count, dtype=torch.float32)
    rows = as_rows(probs)
    plan = plan_vocab(current_target(probs.device), count, columns, LANE_BYTES)
    launch(
        entropy_kernel,
        (plan.programs,),
        rows,
        result,
        count,
        columns,
        rows.stride(0),
        BLOCK=plan.block,
        num_warps=plan.warps,
    )
    return result
