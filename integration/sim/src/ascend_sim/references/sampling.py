# SPDX-License-Identifier: Apache-2.0
"""Filtering logits before sampling."""

from __future__ import annotations

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import op_plugin_doc, wheel_doc


@reference(
    "npu::npu_top_k_top_p",
    source=f"{op_plugin_doc('npu_top_k_top_p', '28212f91')}; {wheel_doc('npu_top_k_top_p')}",
    grade=Grade.DOCUMENTED,
    note="the page requires both p and k; the schema lets one be left out, which skips its step",
)
def npu_top_k_top_p(logits: Tensor, p: Tensor | None = None, k: Tensor | None = None) -> Tensor:
    """Set to -inf what is below the k-th largest logit, then what the smallest probabilities summing to 1 - p cover.

    Args:
        logits: [B, V].
        p: [B], dtype of logits; at least the largest logit is kept.
        k: [B], int32, 1 to 1024 and at most V.
    """
    op = "npu_top_k_top_p"
    ordered, order = torch.sort(logits, dim=-1, stable=True)
    if k is not None:
        most = min(limits.numbers(op)["max_k"], logits.shape[1])
        if int(k.min()) < 1 or int(k.max()) > most:
            raise limits.refuse(op, "k", f"{int(k.min())} to {int(k.max())}", f"1 to {most}")
        threshold = ordered.gather(1, (logits.shape[1] - k.long())[:, None])
        ordered = ordered.masked_fill(ordered < threshold, -torch.inf)
    if p is not None:
        covered = ordered.float().softmax(-1).cumsum(-1) <= (1 - p.float())[:, None]
        covered[:, -1] = False
        ordered = ordered.masked_fill(covered, -torch.inf)
    return torch.empty_like(logits).scatter_(1, order, ordered)
