# SPDX-License-Identifier: Apache-2.0
"""Matrix products."""

from __future__ import annotations

import torch
from torch import Tensor

from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import op_plugin_test, wheel_doc


@reference("atb::_npu_matmul_add_fp32", source=op_plugin_test("test_atb_linear"), grade=Grade.GOLDEN)
def _npu_matmul_add_fp32(x: Tensor, weight: Tensor, C: Tensor) -> None:  # noqa: N803  the schema's name
    """``C += x^T weight`` for x [K, M], weight [K, N] and float32 C [M, N]."""
    C.addmm_(x.float().t(), weight.float())


@reference("npu::npu_linear", source=wheel_doc("npu_linear"), grade=Grade.DOCUMENTED)
def npu_linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input weight^T + bias``; input [M, K], weight [N, K], bias [N]."""
    return torch.nn.functional.linear(input, weight, bias)
