# SPDX-License-Identifier: Apache-2.0
"""Normalisation that subtracts the mean: layer and group norms, alone and fused with an addition or an activation.

Statistics are float32 and of the population; results round once to their dtype.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import op_plugin_test, wheel_doc, wheel_meta
from ascend_sim.references.undefined import undefined


def _layer_norm(x: Tensor, gamma: Tensor, beta: Tensor, epsilon: float) -> tuple[Tensor, Tensor, Tensor]:
    """(y, mean, 1 / deviation) in float32 over the trailing dimensions of ``gamma``."""
    y, mean, rstd = torch.native_layer_norm(x.float(), gamma.shape, gamma.float(), beta.float(), epsilon)
    return y, mean, rstd


@reference(
    "npu::npu_add_layer_norm",
    source=op_plugin_test("test_npu_add_layer_norm"),
    grade=Grade.GOLDEN,
    note="of x1 and x2 of different dtypes the results have the wider, as in the test; the Meta kernel says that of x1",
)
def npu_add_layer_norm(
    x1: Tensor,
    x2: Tensor,
    gamma: Tensor,
    beta: Tensor,
    epsilon: float = 1e-5,
    additional_output: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Layer norm of ``x1 + x2``: (y, mean, 1 / deviation, sum); the sum is undefined without ``additional_output``."""
    dtype = torch.promote_types(x1.dtype, x2.dtype)
    total = x1.float() + x2.float()
    y, mean, rstd = _layer_norm(total, gamma, beta, epsilon)
    return y.to(dtype), mean, rstd, total.to(dtype) if additional_output else undefined(x1.shape, dtype)


@reference("npu::npu_deep_norm", source=op_plugin_test("test_npu_deep_norm"), grade=Grade.GOLDEN)
def npu_deep_norm(
    x: Tensor, gx: Tensor, beta: Tensor, gamma: Tensor, alpha: float = 0.3, epsilon: float = 1e-6
) -> tuple[Tensor, Tensor, Tensor]:
    """Layer norm of ``alpha * x + gx``: (mean, 1 / deviation, y)."""
    y, mean, rstd = _layer_norm(x.float() * alpha + gx.float(), gamma, beta, epsilon)
    return mean, rstd, y.to(x.dtype)


def _group_norm(
    op: str, x: Tensor, weight: Tensor | None, bias: Tensor | None, groups: int, epsilon: float
) -> tuple[Tensor, Tensor, Tensor]:
    if x.dim() < 2 or x.shape[1] % groups:
        raise limits.refuse(op, "input.shape", list(x.shape), f"two dimensions, the second a multiple of {groups}")
    batch, channels = x.shape[:2]
    pair = (None if t is None else t.float() for t in (weight, bias))
    each = x[0, 0].numel()
    y, mean, rstd = torch.native_group_norm(x.float().contiguous(), *pair, batch, channels, each, groups, epsilon)
    return y, mean, rstd


@reference(
    "npu::npu_group_norm_silu",
    source=f"{op_plugin_test('test_group_norm_silu')}; dtypes: {wheel_meta('npu_group_norm_silu')}",
    grade=Grade.GOLDEN,
    note="mean and deviation have the dtype of weight, as the Meta kernel says; the page says that of input",
)
def npu_group_norm_silu(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, group: int, eps: float = 1e-5
) -> tuple[Tensor, Tensor, Tensor]:
    """``silu`` of the group norm of ``input`` [N, C, ...], mean and 1 / deviation [N, group]."""
    y, mean, rstd = _group_norm("npu_group_norm_silu", input, weight, bias, group, eps)
    dtype = input.dtype if weight is None or bias is None else weight.dtype
    return torch.nn.functional.silu(y).to(input.dtype), mean.to(dtype), rstd.to(dtype)


@reference(
    "npu::npu_group_norm_swish",
    source=f"{op_plugin_test('test_npu_group_norm_swish')}; {wheel_doc('npu_group_norm_swish')}",
    grade=Grade.GOLDEN,
)
def npu_group_norm_swish(
    input: Tensor,
    num_groups: int,
    weight: Tensor,
    bias: Tensor,
    eps: float | None = 1e-5,
    swish_scale: float | None = 1.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """``y * sigmoid(swish_scale * y)`` of the group norm y of ``input``, mean and 1 / deviation [N, num_groups]."""
    y, *statistics = _group_norm("npu_group_norm_swish", input, weight, bias, num_groups, 1e-5 if eps is None else eps)
    scale = 1.0 if swish_scale is None else swish_scale
    mean, rstd = (t.to(input.dtype) for t in statistics)
    return y.mul(torch.sigmoid(y * scale)).to(input.dtype), mean, rstd
