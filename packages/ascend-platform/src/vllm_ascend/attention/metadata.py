"""Per-step attention metadata: the host-side lengths and device tables the fused attention reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from vllm.config import VllmConfig
from vllm.v1.attention.backend import (
    AttentionCGSupport,
    AttentionMetadata,
    AttentionMetadataBuilder,
    CommonAttentionMetadata,
)
from vllm.v1.kv_cache_interface import AttentionSpec


@dataclass(slots=True)
class AscendAttentionMetadata(AttentionMetadata):
    """Attention metadata of one step, shared by the layers of one KV cache group.

    Attributes:
        num_tokens: query tokens that attention computes, padding included.
        query_ends: cumulative query lengths per request; the last one is ``num_tokens``.
        seq_lens: KV tokens per request, the step's own included.
        block_table: int32 ``[requests, max blocks]``, page numbers per request.
        slot_mapping: ``[num_tokens]``, where each token's key and value go; -1 skips the token.
        causal: whether a token sees only itself and tokens before it.
    """

    num_tokens: int
    query_ends: list[int]
    seq_lens: list[int]
    block_table: torch.Tensor
    slot_mapping: torch.Tensor
    causal: bool = True


def pad_requests(
    query_ends: list[int], seq_lens: list[int], num_tokens: int, query_len: int
) -> tuple[list[int], list[int]]:
    """Let requests without queries cover the padding tokens up to ``num_tokens``.

    The operator wants the last cumulative length to equal the number of query rows. Graph padding adds requests whose
    query is empty and whose KV length is 0; each becomes a request of ``query_len`` tokens over as many KV tokens of
    the page its (zeroed) block table row names, the null block. Its result is never read.

    Args:
        query_ends: cumulative query lengths, not decreasing.
        seq_lens: KV length per request.
        num_tokens: query rows, padding included.
        query_len: query length of a padding request.
    """
    if not query_ends or query_ends[-1] == num_tokens:
        return query_ends, seq_lens
    missing = num_tokens - query_ends[-1]
    ends: list[int] = []
    lens: list[int] = []
    previous = shift = 0
    for end, length in zip(query_ends, seq_lens):
        if end == previous and shift < missing:
            length = min(query_len, missing - shift)
            shift += length
        previous = end
        ends.append(end + shift)
        lens.append(length)
    if shift != missing:
        raise RuntimeError(
            f"{num_tokens} query rows for requests that end at row {query_ends[-1]}: the padding fits {shift} rows "
            f"into empty requests, {missing} are needed; pad the batch by whole requests"
        )
    return ends, lens


class AscendAttentionMetadataBuilder(AttentionMetadataBuilder[AscendAttentionMetadata]):
    """Builds :class:`AscendAttentionMetadata` once per step and KV cache group."""

    _cudagraph_support: ClassVar[AttentionCGSupport] = AttentionCGSupport.UNIFORM_BATCH
    supports_update_block_table: bool = True

    def __init__(
        self, kv_cache_spec: AttentionSpec, layer_names: list[str], vllm_config: VllmConfig, device: torch.device
    ) -> None:
        # The operator takes decodes and prefills in any order, so no reordering threshold is set.
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)

    def build(
        self, common_prefix_len: int, common_attn_metadata: CommonAttentionMetadata, fast_build: bool = False
    ) -> AscendAttentionMetadata:
        common = common_attn_metadata
        num_reqs = common.num_reqs
        lengths = common._seq_lens_cpu
        # Only asynchronous speculative decoding leaves the lengths to the device; reading them waits for it.
        seq_lens = (common.seq_lens if lengths is None else lengths)[:num_reqs].tolist()
        query_ends = common.query_start_loc_cpu[1 : num_reqs + 1].tolist()
        query_ends, seq_lens = pad_requests(query_ends, seq_lens, common.num_actual_tokens, common.max_query_len)
        return AscendAttentionMetadata(
            common.num_actual_tokens,
            query_ends,
            seq_lens,
            common.block_table_tensor[:num_reqs],
            common.slot_mapping[: common.num_actual_tokens],
            common.causal,
        )

    def update_block_table(
        self, metadata: AscendAttentionMetadata, blk_table: torch.Tensor, slot_mapping: torch.Tensor
    ) -> AscendAttentionMetadata:
        return AscendAttentionMetadata(
            metadata.num_tokens,
            metadata.query_ends,
            metadata.seq_lens,
            blk_table[: len(metadata.seq_lens)],
            slot_mapping[: metadata.num_tokens],
            metadata.causal,
        )
