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
    op, allowed = "npu_attention_update", limits.numbers("npu_attention_update")
    if update_type not in (0, 1):
        raise limits.refuse(op, "update_type", update_type, "0, 1")
    if len(lse) != len(local_out) or not lse:
        raise limits.refuse(op, "len(lse)", len(lse), f"len(local_out) = {len(local_out)}, at least 1")
    size = local_out[0].shape[-1]
    if size % allowed["head_size_multiple"] or size > allowed["max_head_size"]:
        allowed_sizes = f"multiples of {allowed['head_size_multiple']} up to {allowed['max_head_size']}"
        raise limits.refuse(op, "local_out[0].shape[-1]", size, allowed_sizes)
    sums = torch.stack(lse)
    merged = torch.logsumexp(sums, 0)
    weights = (sums - merged).exp_().unsqueeze(-1)
    out = (torch.stack(local_out).float() * weights).sum(0)
    return out.to(local_out[0].dtype), merged
