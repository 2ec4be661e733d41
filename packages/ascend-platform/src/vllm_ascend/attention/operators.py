"""The two versions of the vendor's fused attention operator."""

from __future__ import annotations

import torch
import torch_npu  # noqa: F401  registers the npu operators

from vllm_ascend.graph.tasks import FusedAttention

FUSED_ATTENTION = FusedAttention(
    operator=torch.ops.npu.npu_fused_infer_attention_score.out,
    max_workspace=torch.ops.npu._npu_fused_infer_attention_score_get_max_workspace.default,
    query_lengths="actual_seq_lengths",
    kv_lengths="actual_seq_lengths_kv",
)

FUSED_ATTENTION_V2 = FusedAttention(
    operator=torch.ops.npu.npu_fused_infer_attention_score_v2.out,
    max_workspace=torch.ops.npu._npu_fused_infer_attention_score_v2_get_max_workspace.default,
    query_lengths="actual_seq_qlen",
    kv_lengths="actual_seq_kvlen",
)
"""The version that takes attention sinks."""
