"""How the kernel is launched."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ascend_kernels.launch import MAX_PROGRAMS
from ascend_kernels.ops.fla.scaled_dot_kkt.plan import product_block
from ascend_kernels.ops.fla.solve_tril.plan import solve_precision
from ascend_kernels.target import Target


@dataclass(frozen=True, slots=True)
class IntraPlan:
    """At most ``programs`` programs, each a chunk of one head, ``block_k`` channels at a time."""

    programs: int
    block_k: int
    solve_precision: str
    warps: int


def plan_kda_intra(key_dim: int, dtype: torch.dtype, target: Target) -> IntraPlan:
    """Channels a slice at a time: a decay per channel makes every tile of keys a float32 tile with several copies.

    On CUDA narrower slices, whose copies find registers.
    """
    return IntraPlan(
        programs=MAX_PROGRAMS if target.kind == "cuda" else target.cube_cores,
        block_k=product_block(key_dim, 32 if target.kind == "cuda" else 64),
        solve_precision=solve_precision(dtype, target),
        warps=4,
    )
