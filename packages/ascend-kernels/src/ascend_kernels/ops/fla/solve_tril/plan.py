"""How the kernel is launched."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ascend_kernels.launch import MAX_PROGRAMS
from ascend_kernels.target import Target


@dataclass(frozen=True, slots=True)
class SolveTrilPlan:
    """One program per chunk and head, striding; see :func:`plan_solve_tril`."""

    programs: int
    precision: str
    warps: int


def solve_precision(dtype: torch.dtype, target: Target) -> str:
    """Input precision of the products that an inverse is merged with.

    An inverse of half-precision inputs is rounded to half precision in the end, so ten bits suffice there, and
    float16 has them at twice the rate of tf32; for float32 inputs and on Ascend the products are full float32.
    """
    return "fp16" if target.kind == "cuda" and dtype != torch.float32 else "ieee"


def plan_solve_tril(tasks: int, dtype: torch.dtype, target: Target) -> SolveTrilPlan:
    """Three float32 tiles of 64 x 64 (48 KiB) live at once."""
    programs = min(tasks, MAX_PROGRAMS if target.kind == "cuda" else target.cube_cores)
    return SolveTrilPlan(programs, solve_precision(dtype, target), warps=4)
