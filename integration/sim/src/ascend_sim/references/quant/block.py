# SPDX-License-Identifier: Apache-2.0
"""Quantising blocks of rows and columns with one scale each."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.quant.dtypes import LARGEST, plain_dtype
from ascend_sim.references.quant.integers import saturate
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import cann_doc, op_plugin_test


@reference(
    "npu::npu_dynamic_block_quant",
    source=op_plugin_test("test_npu_dynamic_block_quant")
    + "; "
    + cann_doc("ops-nn", "quant/dynamic_block_quant/docs/aclnnDynamicBlockQuant.md"),
    grade=Grade.GOLDEN,
    note="float8 and blocks of several rows are the Ascend 950's",
)
def npu_dynamic_block_quant(
    x: Tensor,
    *,
    min_scale: float = 0.0,
    round_mode: str = "rint",
    dst_type: int = 1,
    row_block_size: int = 1,
    col_block_size: int = 128,
    dst_type_max: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """Values and float32 scales ``min(max(abs(block)) / largest, 1 / min_scale)`` of x [M, N] or [B, M, N]."""
    op = "npu_dynamic_block_quant"
    if x.dim() not in (2, 3):
        raise limits.refuse(op, "x.dim()", x.dim(), "2 or 3")
    if round_mode != "rint":
        raise limits.refuse(op, "round_mode", round_mode, "rint")
    dtype = plain_dtype(op, "dst_type", dst_type)
    if dtype not in LARGEST:
        raise limits.not_simulated(op, "dst_type", dst_type)
    rows, columns = x.shape[-2:]
    padded = F.pad(x.float(), (0, -columns % col_block_size, 0, -rows % row_block_size))
    blocks = padded.unflatten(-1, (-1, col_block_size)).unflatten(-3, (-1, row_block_size))
    largest = blocks.abs().amax((-1, -3), keepdim=True)
    scale = largest / LARGEST[dtype]
    if min_scale:
        scale = scale.clamp(max=1 / min_scale)
    y = saturate(blocks / scale.masked_fill(scale == 0, 1.0), dtype)
    whole = y.flatten(-2).flatten(-3, -2)[..., :rows, :columns]
    return whole.contiguous(), scale.squeeze(-1).squeeze(-2)
