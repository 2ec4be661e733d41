# SPDX-License-Identifier: Apache-2.0
"""Activations. All compute in float32 and round once to the input dtype."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import op_plugin_doc, op_plugin_test, wheel_doc


@reference("npu::npu_swiglu", source=wheel_doc("npu_swiglu"), grade=Grade.DOCUMENTED)
def npu_swiglu(input: Tensor, dim: int = -1) -> Tensor:
    """``silu(a) * b`` with a, b the halves of ``input`` along ``dim``."""
    if dim % input.dim() != input.dim() - 1:
        halves = input.transpose(dim, -1).contiguous()
        return torch.ops.ascend_sim.swiglu(halves).transpose(dim, -1).contiguous()
    return torch.ops.ascend_sim.swiglu(input.contiguous())


@reference(
    "npu::npu_fast_gelu",
    "npu::fast_gelu",
    source=f"{wheel_doc('fast_gelu')} (printed values); {wheel_doc('npu_fast_gelu')} (formula 2, Atlas A2/A3)",
    grade=Grade.GOLDEN,
)
def npu_fast_gelu(input: Tensor) -> Tensor:
    """``x * sigmoid(1.702 x)``."""
    values = input.float()
    return values.mul(torch.sigmoid(1.702 * values)).to(input.dtype)


@reference("npu::npu_silu", source=wheel_doc("npu_silu"), grade=Grade.DOCUMENTED)
def npu_silu(input: Tensor) -> Tensor:
    """``x * sigmoid(x)``."""
    return F.silu(input)


@reference("npu::npu_silu_", source=wheel_doc("npu_silu"), grade=Grade.DOCUMENTED)
def npu_silu_(input: Tensor) -> Tensor:
    """In-place :func:`npu_silu`."""
    return F.silu(input, inplace=True)


@reference("npu::npu_gelu", source=op_plugin_doc("npu_gelu", "2474c61f"), grade=Grade.DOCUMENTED)
def npu_gelu(input: Tensor, *, approximate: str = "none") -> Tensor:
    """Gaussian error linear unit; ``approximate`` is ``none`` or ``tanh``."""
    return F.gelu(input, approximate=approximate)


@reference("npu::npu_clipped_swiglu", source=op_plugin_test("test_npu_clipped_swiglu"), grade=Grade.GOLDEN)
def npu_clipped_swiglu(
    x: Tensor,
    *,
    group_index: Tensor | None = None,
    dim: int = -1,
    alpha: float = 1.702,
    limit: float = 7.0,
    bias: float = 1.0,
    interleaved: bool = True,
) -> Tensor:
    """SwiGLU with clamped halves, as gpt-oss uses it.

    ``x`` is viewed as rows of everything from ``dim`` on; a and b are its even and odd elements (``interleaved``) or
    its two halves. The result is ``a' sigmoid(alpha a') (b' + bias)`` with ``a' = min(a, limit)`` and ``b'`` clamped to
    ``[-limit, limit]``. With ``group_index`` only its first ``sum(group_index)`` rows are computed, the rest are 0.
    """
    shape = list(x.shape)
    shape[dim] //= 2
    axis = dim % x.dim()
    rows = x.reshape(-1, x.shape[axis:].numel())
    count = rows.shape[0] if group_index is None else min(int(group_index.sum()), rows.shape[0])
    used = rows[:count].float()
    gate, up = (used[:, ::2], used[:, 1::2]) if interleaved else used.chunk(2, -1)
    gate = gate.clamp(max=limit)
    out = x.new_zeros(rows.shape[0], rows.shape[1] // 2)
    out[:count] = gate * torch.sigmoid(alpha * gate) * (up.clamp(-limit, limit) + bias)
    return out.reshape(shape)
