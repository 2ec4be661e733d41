"""Triton kernel: a program writes the rows of one request."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import MAX_PROGRAMS, launch
from ascend_kernels.target import current_target

BLOCK = 128


@triton.jit(do_not_specialize=["requests"])
def expand_requests_kernel(values, cu_counts, result, requests, replace, replacement, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    for request in range(tl.program_id(0), requests, tl.num_programs(0)):
        begin = tl.where(request == 0, 0, tl.load(cu_counts + tl.where(request == 0, 0, request - 1)))
        end = tl.load(cu_counts + request)
        value = tl.load(values + request)
        value = tl.where(value == replace, replacement, value).to(result.dtype.element_ty)
        for start in range(begin, end, BLOCK):
            row = start + lane
            tl.store(result + row, tl.zeros([BLOCK], dtype=result.dtype.element_ty) + value, mask=row < end)


def expand_requests_triton(
    values: torch.Tensor, cu_counts: torch.Tensor, rows: int, replace: float, replacement: float
) -> torch.Tensor:
    """See :func:`ascend_kernels.expand_requests`."""
    result = values.new_empty(rows)
    target = current_target(values.device)
    requests = values.shape[0]
    programs = min(requests, target.vector_cores if target.kind == "ascend" else MAX_PROGRAMS)
    numbers = (replace, replacement) if values.is_floating_point() else (int(replace), int(replacement))
    launch(
        expand_requests_kernel,
        (programs if rows else 0,),
        values,
        cu_counts,
        result,
        requests,
        *numbers,
        BLOCK=BLOCK,
        num_warps=1,
    )
    return result
