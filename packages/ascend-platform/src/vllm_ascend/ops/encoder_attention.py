"""Attention of vision and audio encoders on ``npu_fused_infer_attention_score``: no cache, no mask, no padding."""

from __future__ import annotations

import torch
from torch.utils.weak import WeakIdKeyDictionary
from vllm.model_executor.custom_op import CustomOp
from vllm.model_executor.layers.attention import MMEncoderAttention

from vllm_ascend.attention.head_size import operator_head_size, pad_heads

_HOST_ENDS = WeakIdKeyDictionary()
"""What was read from the device, by the tensor it was read from and its version: all layers share few tensors."""


def _version(tensor: torch.Tensor) -> int:
    """Changes when ``tensor`` is written. Tensors made in inference mode have none; only their maker writes them."""
    return 0 if tensor.is_inference() else tensor._version


def sequence_ends(cu_seqlens: torch.Tensor) -> list[int]:
    """Where each sequence that has tokens ends.

    Args:
        cu_seqlens: cumulative lengths, 0 first. Read from the device once, however many layers ask.
    """
    version, ends = _HOST_ENDS.get(cu_seqlens, (None, None))
    if ends is None or version != _version(cu_seqlens):
        # Windows without patches, and padding, repeat an end; the operator wants sequences with tokens.
        ends = [end for end in dict.fromkeys(cu_seqlens.tolist()) if end]
        _HOST_ENDS[cu_seqlens] = _version(cu_seqlens), ends
    return ends


class AscendMMEncoderAttention(MMEncoderAttention):
    """``softmax(scale * q @ k.T) @ v`` within each sequence."""

    def forward_oot(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        cu_seqlens: torch.Tensor | None = None,
        max_seqlen: torch.Tensor | None = None,
        sequence_lengths: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Attend.

        Args:
            query: ``[batch, tokens, num_heads, head_size]`` or ``[batch, tokens, num_heads * head_size]``.
            key, value: the same with ``num_kv_heads``.
            cu_seqlens: cumulative lengths of the sequences in ``batch * tokens``; None for one per row of the batch.
            max_seqlen, sequence_lengths: of other backends; not used.

        Returns:
            The shape of ``query``.
        """
        batch, tokens = query.shape[:2]
        rows = range(tokens, batch * tokens + 1, tokens)
        ends = list(rows) if cu_seqlens is None else sequence_ends(cu_seqlens)
        size = operator_head_size(self.head_size, grouped=self.num_heads != self.num_kv_heads)
        packed, _ = torch.ops.npu.npu_fused_infer_attention_score(
            pad_heads(query.reshape(-1, self.num_heads, self.head_size), size),
            pad_heads(key.reshape(-1, self.num_kv_heads, self.head_size), size),
            pad_heads(value.reshape(-1, self.num_kv_heads, self.head_size), size),
            actual_seq_lengths=ends,
            actual_seq_lengths_kv=ends,
            num_heads=self.num_heads,
            num_key_value_heads=self.num_kv_heads,
            scale=self.scale,
            input_layout="TND",
            sparse_mode=0,
        )
        return packed[..., : self.head_size].reshape(query.shape)


ENCODER_ATTENTION: dict[type[CustomOp], type[CustomOp]] = {MMEncoderAttention: AscendMMEncoderAttention}
"""vLLM's class and the one that replaces it."""
