# SPDX-License-Identifier: Apache-2.0
"""The empty results of npu_fused_infer_attention_score, for callers that allocate them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ascend_sim.references.attention.layouts import FUSED_INFER
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import wheel_doc, wheel_meta

_V1 = "npu_fused_infer_attention_score"
_V2 = "npu_fused_infer_attention_score_v2"


def _output_shape(layout: str, query: Tensor, heads: int, value_size: int) -> list[int]:
    """Shape of the result for a query in ``layout``."""
    pair = FUSED_INFER[layout]
    sizes = dict(zip(pair.query, query.shape, strict=True))
    sizes.setdefault("N", heads)
    sizes |= {"D": value_size, "H": heads * value_size}
    return [sizes[letter] for letter in pair.output]


@reference(
    f"npu::_{_V1}_infer_output",
    f"npu::_{_V2}_infer_output",
    source=f"{wheel_doc(f'_{_V1}_infer_output')}; shapes: {wheel_meta(_V1)}",
    grade=Grade.DOCUMENTED,
)
def npu_fused_infer_attention_score_infer_output(query: Tensor, value: Tensor, **given: Any) -> tuple[Tensor, Tensor]:
    """Empty tensors of the shapes of the result and the log-sum-exp."""
    layout = given.get("input_layout", "BSH")
    heads = given.get("num_heads", given.get("num_query_heads", 1))
    key_heads = given.get("num_key_value_heads", 0) or heads
    size = (
        value.shape[-1] // key_heads if value.dim() == 3 and (layout[:3] == "BSH" or _paged(given)) else value.shape[-1]
    )
    if value.dim() == 5:
        size = value.shape[2] * value.shape[4]
    out = query.new_empty(_output_shape(layout, query, heads, size))
    if not given.get("softmax_lse_flag", given.get("return_softmax_lse", False)):
        return out, query.new_empty(0, dtype=torch.float32)
    sizes = dict(zip(FUSED_INFER[layout].query, query.shape, strict=True)) | {"N": heads}
    shape = [sizes["T"], heads, 1] if FUSED_INFER[layout].packed else [sizes["B"], heads, sizes["S"], 1]
    return out, query.new_empty(shape, dtype=torch.float32)


def _paged(given: dict[str, Any]) -> bool:
    return given.get("block_table") is not None
