# SPDX-License-Identifier: Apache-2.0
"""Products that quantise their left operand first (Atlas inference series), and one with GELU behind it."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.matmul.groups import group_ranges
from ascend_sim.references.matmul.products import Scales, elements, integer_product, quantised_product
from ascend_sim.references.quant.integers import saturate
from ascend_sim.references.quant.weight import scale_of
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import cann_doc, wheel_doc
from ascend_sim.references.undefined import undefined


def _quantise(
    op: str, x: Tensor, scale: Tensor | None, smooth: Tensor | None, mode: str | None
) -> tuple[Tensor, Tensor]:
    """int8 ``x * smooth / scale`` and the scale, [M, 1] or [1, 1]; without one it is the largest magnitude / 127."""
    if mode not in ("pertoken", "pertensor"):
        raise limits.refuse(op, "quant_mode", mode, "pertoken or pertensor")
    values = x.float() if smooth is None else x.float() * smooth.float()
    if scale is not None:
        steps = scale.float().reshape(-1, 1)
    elif mode == "pertoken":
        steps = values.abs().amax(-1, keepdim=True) / 127
    else:
        steps = values.abs().amax().reshape(1, 1) / 127
    return saturate(values / steps.masked_fill(steps == 0, 1.0), torch.int8), steps


def _dequantise(x: Tensor, steps: Tensor, weight: Tensor, scale: Tensor, bias: Tensor | None) -> Tensor:
    """float16; int64 scales hold the bits of float32 ones that x's scale is a factor of already."""
    total = integer_product(x, weight.t())
    values = (total if bias is None else total + bias).float() * scale_of(scale)
    return (values if scale.dtype == torch.int64 else values * steps).half()


@reference(
    "npu::npu_quant_matmul_dequant",
    source=cann_doc("ops-nn", "matmul/quant_matmul_dequant/docs/aclnnQuantMatmulDequant.md"),
    grade=Grade.DOCUMENTED,
    note="written from the page of npu_quant_grouped_matmul_dequant for one group",
)
def npu_quant_matmul_dequant(
    x: Tensor,
    quantized_weight: Tensor,
    weight_scale: Tensor,
    *,
    bias: Tensor | None = None,
    x_scale: Tensor | None = None,
    x_offset: Tensor | None = None,
    smooth_scale: Tensor | None = None,
    quant_mode: str | None = "pertoken",
) -> Tensor:
    """``(quantised(x * smooth_scale) @ quantized_weight^T + bias) * weight_scale * x_scale``; weight int8 [N, K]."""
    op = "npu_quant_matmul_dequant"
    if x_offset is not None:
        raise limits.not_simulated(op, "x_offset", "given")
    codes, steps = _quantise(op, x, x_scale, smooth_scale, quant_mode)
    return _dequantise(codes, steps, quantized_weight, weight_scale, bias)


@reference(
    "npu::npu_quant_grouped_matmul_dequant",
    source=cann_doc("ops-transformer", "gmm/quant_grouped_matmul_dequant/docs/aclnnQuantGroupedMatmulDequant.md"),
    grade=Grade.DOCUMENTED,
    note="rows beyond the groups are undefined",
)
def npu_quant_grouped_matmul_dequant(
    x: Tensor,
    quantized_weight: Tensor,
    weight_scale: Tensor,
    group_list: Tensor,
    *,
    bias: Tensor | None = None,
    x_scale: Tensor | None = None,
    x_offset: Tensor | None = None,
    smooth_scale: Tensor | None = None,
    quant_mode: str | None = "pertoken",
) -> Tensor:
    """:func:`npu_quant_matmul_dequant` with a weight [N, K] for each group of rows, given by their running sums."""
    op = "npu_quant_grouped_matmul_dequant"
    if x_offset is not None or bias is not None:
        raise limits.not_simulated(op, "bias, x_offset", "given")
    codes, steps = _quantise(op, x, x_scale, smooth_scale, quant_mode)
    out = undefined((len(x), quantized_weight.shape[1]), torch.float16)
    for group, start, end in group_ranges(op, group_list, 0, len(x)):
        rows = steps[start:end] if len(steps) > 1 else steps
        out[start:end] = _dequantise(codes[start:end], rows, quantized_weight[group], weight_scale[group], None)
    return out


@reference("npu::npu_quant_matmul_gelu", source=wheel_doc("npu_quant_matmul_gelu"), grade=Grade.DOCUMENTED)
def npu_quant_matmul_gelu(
    x1: Tensor,
    x2: Tensor,
    x1_scale: Tensor,
    x2_scale: Tensor,
    *,
    bias: Tensor | None = None,
    approximate: str | None = "gelu_erf",
) -> Tensor:
    """GELU of the product of int8 or packed int4 matrices with scales by token and channel; float16 or bfloat16."""
    op = "npu_quant_matmul_gelu"
    if approximate not in ("gelu_erf", "gelu_tanh"):
        raise limits.refuse(op, "approximate", approximate, "gelu_erf or gelu_tanh")
    values = quantised_product(elements(x1), elements(x2), Scales(x2_scale, x1_scale, bias))
    activated = F.gelu(values, approximate="tanh" if approximate == "gelu_tanh" else "none")
    return activated.to(torch.bfloat16 if x2_scale.dtype == torch.bfloat16 else torch.float16)
