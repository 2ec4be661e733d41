# SPDX-License-Identifier: Apache-2.0
"""Root-mean-square normalisation: ``y = x / sqrt(mean(x^2) + epsilon) * gamma``.

Statistics and the product with gamma are float32 and round once to the input dtype, as the vendor's CPU goldens do; a
residual sum is rounded to the input dtype before it is normalised.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import cann_doc, op_plugin_test


def rms_norm_float(x: Tensor, gamma: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """Normalise over the trailing ``gamma.dim()`` dimensions.

    Returns:
        The result in float32, shaped like ``x``, and ``1 / rms`` in float32 with those dimensions kept as 1.
    """
    values = x.float()
    dims = list(range(-gamma.dim(), 0))
    rstd = torch.rsqrt(values.square().mean(dims, keepdim=True).add_(epsilon))
    return (values * rstd).mul_(gamma.float()), rstd


def _rms_norm(x: Tensor, residual: Tensor | None, gamma: Tensor, epsilon: float) -> tuple[Tensor, Tensor, Tensor]:
    """:func:`rms_norm_float` of ``x`` or ``x + residual``, rounded to x's dtype, in one pass; and the sum."""
    size = gamma.numel()
    rows = x.contiguous().view(-1, size)
    other = None if residual is None else residual.contiguous().view(-1, size)
    y, rstd, total = torch.ops.ascend_sim.rms_norm(rows, other, gamma.float().flatten(), epsilon)
    lead = x.shape[: x.dim() - gamma.dim()]
    return y.view(x.shape), rstd.view(*lead, *[1] * gamma.dim()), total if residual is None else total.view(x.shape)


@reference(
    "npu::npu_rms_norm",
    source=op_plugin_test("test_npu_rms_norm"),
    grade=Grade.GOLDEN,
)
def npu_rms_norm(input: Tensor, gamma: Tensor, epsilon: float = 1e-6) -> tuple[Tensor, Tensor]:
    """Return ``(y, rstd)``; y like input, rstd float32."""
    y, rstd, _ = _rms_norm(input, None, gamma, epsilon)
    return y, rstd


@reference(
    "npu::npu_gemma_rms_norm", source=cann_doc("ops-nn", "norm/gemma_rms_norm/README.md"), grade=Grade.DOCUMENTED
)
def npu_gemma_rms_norm(input: Tensor, gamma: Tensor, epsilon: float = 1e-6) -> tuple[Tensor, Tensor]:
    """Like :func:`npu_rms_norm` with ``1 + gamma``."""
    y, rstd, _ = _rms_norm(input, None, gamma.float() + 1, epsilon)
    return y, rstd


@reference("npu::npu_add_rms_norm", source=op_plugin_test("test_npu_add_rms_norm"), grade=Grade.GOLDEN)
def npu_add_rms_norm(x1: Tensor, x2: Tensor, gamma: Tensor, epsilon: float = 1e-6) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``(y, rstd, x)`` of ``x = x1 + x2``."""
    return _rms_norm(x1, x2, gamma if gamma.shape[0] == x1.shape[-gamma.dim()] else gamma[0], epsilon)


@reference("npu::npu_add_rms_norm_v2", source=op_plugin_test("test_npu_add_rms_norm_v2"), grade=Grade.GOLDEN)
def npu_add_rms_norm_v2(x1: Tensor, x2: Tensor, gamma: Tensor, epsilon: float = 1e-6) -> Tensor:
    """Write y into ``x1`` and the sum into ``x2``; return rstd."""
    y, rstd, x = npu_add_rms_norm(x1, x2, gamma, epsilon)
    x1.copy_(y)
    x2.copy_(x)
    return rstd


@reference("npu::npu_add_rms_norm_v2_functional", source=op_plugin_test("test_npu_add_rms_norm_v2"), grade=Grade.GOLDEN)
def npu_add_rms_norm_v2_functional(
    x1: Tensor, x2: Tensor, gamma: Tensor, epsilon: float = 1e-6
) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``(rstd, y, x)``."""
    y, rstd, x = npu_add_rms_norm(x1, x2, gamma, epsilon)
    return rstd, y, x


@reference("npu::npu_add_rms_norm_cast", source=op_plugin_test("test_npu_add_rms_norm_cast"), grade=Grade.GOLDEN)
def npu_add_rms_norm_cast(
    x1: Tensor, x2: Tensor, gamma: Tensor, epsilon: float = 1e-6
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return ``(y1, y2, rstd, x)``: y2 rounded to the input dtype, y1 the same before rounding, in float32."""
    x = x1 + x2
    y, rstd = rms_norm_float(x, gamma, epsilon)
    return y, y.to(x.dtype), rstd, x


@reference(
    "npu::npu_layer_norm_eval",
    source="torch_npu 2.13.0 _op_plugin_docs.py: npu_layer_norm_eval",
    grade=Grade.DOCUMENTED,
)
def npu_layer_norm_eval(
    input: Tensor,
    normalized_shape: list[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Layer normalisation over ``normalized_shape``, as :func:`torch.nn.functional.layer_norm`."""
    return torch.nn.functional.layer_norm(input, normalized_shape, weight, bias, eps)
