# SPDX-License-Identifier: Apache-2.0
"""Merging attention results of parts of the keys."""

from __future__ import annotations

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import op_plugin_test, wheel_doc


@reference(
    "npu::npu_attention_update",
    source=f"{op_plugin_test('test_npu_attention_update')}; {wheel_doc('npu_attention_update')}",
    grade=Grade.GOLDEN,
    note="a part with log-sum-exp +inf (no key seen) gives NaN, as the formula does",
)
def npu_attention_update(lse: list[Tensor], local_out: list[Tensor], update_type: int) -> tuple[Tensor, Tensor]:
    """Merge parts by their log-sum-exp: ``lse_m = log(sum exp(lse_i))``, ``out = sum out_i exp(lse_i - lse_m)``.

    Args:
        lse: One float32 [N] per part.
        local_out: One [N, D] per part, D a multiple of 8 up to 512.
        update_type: 0 for the result alone, 1 also for ``lse_m``.

    Returns:
        The result [N, D] in local_out's dtype and ``lse_m`` [N] (meaningful with ``update_type`` 1).
    """
    sums = torch.stack(lse)
    merged = torch.logsumexp(sums, 0)
    weights = (sums - merged).exp_().unsqueeze(-1)
    out = (torch.stack(local_out).float() * weights).sum(0)
    return out.to(local_out[0].dtype), merged


@reference(
    "npu::npu_ring_attention_update",
    source=f"{op_plugin_test('test_npu_ring_attention_update')}; {wheel_doc('npu_ring_attention_update')}",
    grade=Grade.GOLDEN,
    note="of packed results only input_softmax_layout TND is simulated",
)
def npu_ring_attention_update(
    prev_attn_out: Tensor,
    prev_softmax_max: Tensor,
    prev_softmax_sum: Tensor,
    cur_attn_out: Tensor,
    cur_softmax_max: Tensor,
    cur_softmax_sum: Tensor,
    *,
    actual_seq_qlen: Tensor | None = None,
    input_layout: str = "SBH",
    input_softmax_layout: str = "",
) -> tuple[Tensor, Tensor, Tensor]:
    """Merge two results of npu_fusion_attention for two parts of the keys: (result, maximum, sum).

    Results are [S, B, H] with maxima and sums [B, N, S, 8], or packed [T, N, D] with [T, N, 8].
    """
    op = "npu_ring_attention_update"
    if input_layout not in ("SBH", "TND"):
        raise limits.refuse(op, "input_layout", repr(input_layout), "'SBH', 'TND'")
    if input_layout == "TND" and input_softmax_layout != "TND":
        raise limits.not_simulated(op, "input_softmax_layout", repr(input_softmax_layout))
    top = torch.maximum(prev_softmax_max, cur_softmax_max)
    parts = [(prev_softmax_max - top).exp_() * prev_softmax_sum, (cur_softmax_max - top).exp_() * cur_softmax_sum]
    total = parts[0] + parts[1]
    factors = [(part / total)[..., :1] for part in parts]
    outs = [prev_attn_out.float(), cur_attn_out.float()]
    if input_layout == "SBH":
        heads = top.shape[1]
        factors = [factor.permute(2, 0, 1, 3) for factor in factors]
        outs = [out.unflatten(-1, (heads, -1)) for out in outs]
    merged = outs[0] * factors[0] + outs[1] * factors[1]
    return merged.reshape(prev_attn_out.shape).to(prev_attn_out.dtype), top, total
