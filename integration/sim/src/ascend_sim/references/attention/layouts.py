# SPDX-License-Identifier: Apache-2.0
"""Tensor layouts of the attention operators.

Letters: B batch, S sequence, N heads, D head size, H = N * D, T all sequences of a batch packed along one dimension.
``X_Y`` takes its query as X and gives its result as Y.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

_PACKED = {"TND", "NTD"}


@dataclass(frozen=True, slots=True)
class Layout:
    """Layouts of an operator's query (and unpaged keys and values) and of its result."""

    query: str
    output: str

    @property
    def packed(self) -> bool:
        """Whether sequences of different lengths lie one after the other instead of padded to one length."""
        return self.query in _PACKED


FUSED_INFER = {
    name: Layout(*(name.split("_") * 2)[:2])
    for name in (
        [
            "BSH",
            "BSND",
            "BNSD",
            "BNSD_BSND",
            "BSH_NBSD",
            "BSND_NBSD",
            "BNSD_NBSD",
            "BSH_BNSD",
            "BSND_BNSD",
            "TND",
            "NTD",
            "TND_NTD",
            "NTD_TND",
        ]
    )
}
"""Layouts of npu_fused_infer_attention_score by ``input_layout``."""


def tokens_first(tensor: Tensor, layout: str, heads: int) -> Tensor:
    """View ``tensor`` as [B, S, N, D], or [T, N, D] for a packed layout."""
    if layout == "BSH":
        return tensor.reshape(*tensor.shape[:2], heads, -1)
    if layout == "SBH":
        return tensor.reshape(*tensor.shape[:2], heads, -1).transpose(0, 1)
    if layout == "BNSD":
        return tensor.transpose(1, 2)
    if layout == "NTD":
        return tensor.transpose(0, 1)
    return tensor


def from_tokens_first(tensor: Tensor, layout: str) -> Tensor:
    """The inverse of :func:`tokens_first`; the result is contiguous."""
    if layout == "BSH":
        return tensor.flatten(2)
    if layout == "SBH":
        return tensor.flatten(2).transpose(0, 1).contiguous()
    if layout == "BNSD":
        return tensor.transpose(1, 2).contiguous()
    if layout == "NBSD":
        return tensor.permute(2, 0, 1, 3).contiguous()
    if layout == "NTD":
        return tensor.transpose(0, 1).contiguous()
    return tensor
