"""How the first kernel of the chunked form is launched."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ascend_kernels.launch import MAX_PROGRAMS
from ascend_kernels.ops.fla.scaled_dot_kkt.plan import product_block
from ascend_kernels.ops.fla.solve_tril.plan import solve_precision
from ascend_kernels.target import Target

CHUNK = 64
"""Tokens whose inverse is computed at once."""


@dataclass(frozen=True, slots=True)
class GdnIntraPlan:
    """At most ``programs`` programs, each a chunk of one head, ``block_k`` key channels at a time."""

    programs: int
    block_k: int
    solve_precision: str
    warps: int


def plan_gdn_intra(key_dim: int, dtype: torch.dtype, target: Target) -> GdnIntraPlan:
    """Whole heads up to 128 channels; only CUDA has room for the tiles of all that this kernel does."""
    return GdnIntraPlan(
        programs=MAX_PROGRAMS,
        block_k=product_block(key_dim, 128),
        solve_precision=solve_precision(dtype, target),
        warps=4,
    )
