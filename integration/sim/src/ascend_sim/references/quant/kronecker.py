# SPDX-License-Identifier: Apache-2.0
"""Rotating activations by a Kronecker product of two small matrices and quantising them to 4 bits (FlatQuant)."""

from __future__ import annotations

from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.quant.integers import pack_int4, saturate_int4
from ascend_sim.references.quant.microscale import E2M1, quantise
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import cann_doc, op_plugin_test


@reference(
    "npu::npu_kronecker_quant",
    source=op_plugin_test("test_npu_kronecker_quant")
    + "; "
    + cann_doc("ops-nn", "quant/flat_quant/docs/aclnnFlatQuant.md"),
    grade=Grade.DOCUMENTED,
    note="rounds to nearest: the vendor's golden truncates, on data where both agree, and the page does not say",
)
def npu_kronecker_quant(
    x: Tensor,
    kronecker_p1: Tensor,
    kronecker_p2: Tensor,
    clip_ratio: float | None = None,
    dst_dtype: int | None = None,
    dst_type_max: float | None = None,
) -> tuple[Tensor, Tensor]:
    """``p1 @ (x @ p2)`` of x [K, M, N], each product rounded to x's dtype, quantised with one scale a row of K.

    Returns int4 packed as int32 [K, M, N / 8] and scales ``max(abs) / (7 clip_ratio)`` [K]; or, with ``dst_dtype``
    ``torch_npu.float4_e2m1fn_x2``, float4 [K, M * N / 2] and E8M0 scales of blocks of 32, uint8 in pairs.
    """
    op = "npu_kronecker_quant"
    product = x if kronecker_p2.numel() == 0 else (x.float() @ kronecker_p2.float()).to(x.dtype)
    rotated = (kronecker_p1.float() @ product.float()).to(x.dtype).float()
    if dst_dtype == 296:
        if dst_type_max:
            raise limits.not_simulated(op, "dst_type_max", dst_type_max)
        return quantise(rotated.flatten(1), E2M1)
    if dst_dtype not in (None, 3):
        raise limits.refuse(op, "dst_dtype", dst_dtype, "int32 or torch_npu.float4_e2m1fn_x2")
    ratio = 1.0 if clip_ratio is None else clip_ratio
    if not 0 < ratio <= 1:
        raise limits.refuse(op, "clip_ratio", ratio, "values above 0 up to 1")
    scale = rotated.abs().amax((1, 2)) / (7 * ratio)
    return pack_int4(saturate_int4(rotated / scale.masked_fill(scale == 0, 1.0)[:, None, None])), scale
