"""The attention backend that vLLM selects on Ascend."""

from __future__ import annotations

from typing import ClassVar

import torch
from vllm.v1.attention.backend import AttentionBackend, AttentionType, MultipleOf

from vllm_ascend.attention.impl import AscendAttentionImpl
from vllm_ascend.attention.metadata import AscendAttentionMetadataBuilder
from vllm_ascend.plugins import registry


class AscendAttentionBackend(AttentionBackend):
    """Attention over a paged KV cache of shape ``[2, num_blocks, block_size, num_kv_heads, head_size]``.

    Index 0 of the first dimension holds keys, 1 values; each half is a contiguous
    ``[blocks, block_size, heads * size]`` tensor, the layout ``npu_fused_infer_attention_score`` reads pages from.
    """

    # float32 is for runtimes that accept it; the vendor's operators on hardware refuse it with their own message.
    supported_dtypes: ClassVar[list[torch.dtype]] = [torch.float16, torch.bfloat16, torch.float32]

    @staticmethod
    def get_supported_kernel_block_sizes() -> list[int | MultipleOf]:
        # npu_fused_infer_attention_score, "block_size": 128 to 512 tokens per page, in steps of 128.
        return [MultipleOf(128)]

    @classmethod
    def get_preferred_block_size(cls, default_block_size: int) -> int:
        # vLLM's default of 16 tokens makes many small pages; the SoC's own default is what its kernels are tuned for.
        return registry().soc.kernel_block_sizes[0]

    @staticmethod
    def get_name() -> str:
        # vLLM looks the name up in its backend registry; out-of-tree backends register as CUSTOM.
        return "CUSTOM"

    @staticmethod
    def get_impl_cls() -> type[AscendAttentionImpl]:
        return AscendAttentionImpl

    @staticmethod
    def get_builder_cls() -> type[AscendAttentionMetadataBuilder]:
        return AscendAttentionMetadataBuilder

    @staticmethod
    def get_kv_cache_shape(
        num_blocks: int,
        block_size: int,
        num_kv_heads: int,
        head_size: int,
        cache_dtype_str: str = "auto",
    ) -> tuple[int, ...]:
        return (2, num_blocks, block_size, num_kv_heads, head_size)

    @classmethod
    def supports_sink(cls) -> bool:
        return True

    @classmethod
    def supports_non_causal(cls) -> bool:
        return True

    @classmethod
    def supports_attn_type(cls, attn_type: str) -> bool:
        return attn_type in (AttentionType.DECODER, AttentionType.ENCODER_ONLY, AttentionType.ENCODER)
