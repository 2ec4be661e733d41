# SPDX-License-Identifier: Apache-2.0
"""Softmax over the last dimension, masked, biased or in place. All compute in float32."""

from __future__ import annotations

from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import cann_doc, op_plugin_test, wheel_doc

_MASKED = -10000.0


@reference(
    "npu::npu_masked_softmax_with_rel_pos_bias",
    source=op_plugin_test("test_masked_softmax_with_rel_pos_bias"),
    grade=Grade.GOLDEN,
    note="scale_value multiplies x, as its name says; the test leaves it 1",
)
def npu_masked_softmax_with_rel_pos_bias(
    x: Tensor,
    atten_mask: Tensor | None,
    relative_pos_bias: Tensor,
    scale_value: float = 1.0,
    inner_precision_mode: int = 0,
) -> Tensor:
    """``softmax(scale_value * x + atten_mask + relative_pos_bias)`` over the last dimension."""
    scores = x.float() * scale_value
    if atten_mask is not None:
        scores = scores + atten_mask.float()
    return (scores + relative_pos_bias.float()).softmax(-1).to(x.dtype)


@reference(
    "npu::npu_scaled_masked_softmax",
    source=f"{wheel_doc('npu_scaled_masked_softmax')}; "
    + cann_doc("ops-nn", "vfusion/scaled_masked_softmax_v2/README.md"),
    grade=Grade.DOCUMENTED,
    note="hidden scores are -10000, as in MindStudio's golden; the pages do not say, and only rows all hidden tell",
)
def npu_scaled_masked_softmax(x: Tensor, mask: Tensor, scale: float = 1, fixed_triu_mask: bool = False) -> Tensor:
    """``softmax(scale * x)`` with the scores hidden where ``mask``, broadcast to ``x``, is true."""
    op = "npu_scaled_masked_softmax"
    if fixed_triu_mask:
        raise limits.refuse(op, "fixed_triu_mask", True, "False")
    sizes = list(x.shape[-2:])
    if any(n % 32 or not 32 <= n <= 4096 for n in sizes):
        raise limits.refuse(op, "x.shape[-2:]", sizes, "multiples of 32 from 32 to 4096")
    return (x.float() * scale).masked_fill_(mask, _MASKED).softmax(-1).to(x.dtype)


@reference("npu::npu_attn_softmax_", source=op_plugin_test("test_npu_attn_softmax"), grade=Grade.GOLDEN)
def npu_attn_softmax_(input: Tensor) -> Tensor:
    """Softmax in place."""
    return input.copy_(input.float().softmax(-1))
