"""Attention of one layer on ``npu_fused_infer_attention_score``.

With ``q`` and ``k`` the query and key of head ``h`` and ``g`` its key/value head,
``out[t, h] = softmax(scale * q[t, h] @ k[:, g].T + mask [, sink[h]]) @ v[:, g]``.
"""

from __future__ import annotations

from typing import Any

import torch
from vllm.v1.attention.backend import AttentionImpl, AttentionLayer, AttentionType

from vllm_ascend.attention.head_size import operator_head_size, pad_heads, queries_per_head
from vllm_ascend.attention.masks import compressed_causal_mask, unused_softmax_lse
from vllm_ascend.attention.metadata import AscendAttentionMetadata
from vllm_ascend.attention.operators import FUSED_ATTENTION, FUSED_ATTENTION_V2
from vllm_ascend.graph.tasks import recording_tasks

SPARSE_FULL, SPARSE_CAUSAL, SPARSE_BAND = 0, 3, 4
"""Sparse modes: no mask; causal, aligned to the last query and key; a band around that diagonal."""

_ENCODER_TYPES = (AttentionType.ENCODER_ONLY, AttentionType.ENCODER)


class AscendAttentionImpl(AttentionImpl[AscendAttentionMetadata]):
    """Decoder attention over pages, and encoder attention over the step's own tokens."""

    def __init__(
        self,
        num_heads: int,
        head_size: int,
        scale: float,
        num_kv_heads: int | None = None,
        alibi_slopes: list[float] | None = None,
        sliding_window: int | None = None,
        kv_cache_dtype: str = "auto",
        logits_soft_cap: float | None = None,
        attn_type: str = AttentionType.DECODER,
        kv_sharing_target_layer_name: str | None = None,
        sinks: torch.Tensor | None = None,
        **unsupported: Any,
    ) -> None:
        if alibi_slopes is not None:
            raise NotImplementedError("npu_fused_infer_attention_score takes no ALiBi slopes in its paged layout")
        if logits_soft_cap:
            raise NotImplementedError(
                f"logits_soft_cap={logits_soft_cap}: npu_fused_infer_attention_score cannot cap attention logits, and "
                "leaving the cap out would change the model; models with attention soft capping (Gemma 2) cannot run"
            )
        if attn_type not in (AttentionType.DECODER, *_ENCODER_TYPES):
            raise NotImplementedError(
                f"attention type {attn_type!r} is not supported; decoder and encoder attention are"
            )
        if unsupported:
            raise NotImplementedError(f"attention arguments {sorted(unsupported)} are not supported on Ascend")
        self.num_heads = num_heads
        self.head_size = head_size
        self.scale = float(scale)
        self.num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        if num_heads % self.num_kv_heads:
            raise ValueError(f"{num_heads} query heads are no multiple of {self.num_kv_heads} key/value heads")
        self.kv_cache_dtype = kv_cache_dtype
        self.kv_sharing_target_layer_name = kv_sharing_target_layer_name
        self.sliding_window = sliding_window
        self.attn_type = attn_type
        self.encoder = attn_type in _ENCODER_TYPES
        self.sinks = sinks
        if sinks is not None and sinks.shape[0] != num_heads:
            raise ValueError(f"{sinks.shape[0]} attention sinks for {num_heads} query heads; one per head is needed")
        grouped = self.num_kv_heads != num_heads
        self.operator_size = operator_head_size(head_size, grouped=grouped) if self.encoder else head_size
        self.repeats = 1 if self.encoder else queries_per_head(head_size, grouped=grouped)
        # Made with the model, so that the memory left for the KV cache is measured with it.
        compressed_causal_mask(torch.device("npu", torch.npu.current_device()))
        self._cache: torch.Tensor | None = None
        self._pages: tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor] | None = None

    def forward(
        self,
        layer: AttentionLayer,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        kv_cache: torch.Tensor,
        attn_metadata: AscendAttentionMetadata | None,
        output: torch.Tensor,
        output_scale: torch.Tensor | None = None,
        output_block_scale: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Write the step's keys and values to their pages and attend.

        Args:
            layer: the vLLM layer; names the captured task.
            query: ``[tokens, num_heads, head_size]``.
            key, value: ``[tokens, num_kv_heads, head_size]``; None where the KV cache of another layer is read.
            kv_cache: see :class:`AscendAttentionBackend`.
            attn_metadata: None in a profile run, which has no KV cache.
            output: ``[tokens, num_heads, head_size]``, written in place; rows past ``attn_metadata.num_tokens`` stay.
        """
        if output_scale is not None or output_block_scale is not None:
            raise NotImplementedError("quantised attention output is not supported on Ascend")
        if attn_metadata is None:
            return output.zero_()
        num_tokens = attn_metadata.num_tokens
        if query.shape[0] != num_tokens:
            query, out = query[:num_tokens], output[:num_tokens]
            if key is not None:
                key, value = key[:num_tokens], value[:num_tokens]
        else:
            out = output
        if not query.is_contiguous():
            query = query.contiguous()
        if self.encoder:
            # Without pages the operator wants cumulative key lengths, and a token's keys are its request's queries.
            arguments = self._encoder_arguments(query, key, value)
            kv_lengths = attn_metadata.query_ends
        else:
            key_cache, value_cache, key_pages, value_pages = self._views(kv_cache)
            if key is not None and self.kv_sharing_target_layer_name is None:
                torch.ops.atb._npu_reshape_and_cache(key, value, key_cache, value_cache, attn_metadata.slot_mapping)
            arguments = self._paged_arguments(query, key_pages, value_pages, key_cache.shape[1], attn_metadata)
            kv_lengths = attn_metadata.seq_lens
        if self.repeats == 1 and self.operator_size == self.head_size:
            self._attend(layer, arguments, attn_metadata.query_ends, kv_lengths, out)
            return output
        query = arguments["query"] = arguments["query"].repeat_interleave(self.repeats, dim=1)
        reshaped = torch.empty_like(query)
        self._attend(layer, arguments, attn_metadata.query_ends, kv_lengths, reshaped)
        out.copy_(reshaped[:, :: self.repeats, : self.head_size])
        return output

    def _views(self, kv_cache: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """Keys and values by head for writing, and by page for attention; views are kept while the cache stays."""
        if self._pages is None or self._cache is not kv_cache:
            key_cache, value_cache = kv_cache.unbind(0)
            self._cache = kv_cache
            self._pages = key_cache, value_cache, key_cache.flatten(2), value_cache.flatten(2)
        return self._pages

    def _paged_arguments(
        self,
        query: torch.Tensor,
        key_pages: torch.Tensor,
        value_pages: torch.Tensor,
        block_size: int,
        metadata: AscendAttentionMetadata,
    ) -> dict[str, Any]:
        arguments: dict[str, Any] = {
            "query": query,
            "key": key_pages,
            "value": value_pages,
            "block_table": metadata.block_table,
            "block_size": block_size,
        }
        if not metadata.causal:
            arguments["sparse_mode"] = SPARSE_FULL
            return arguments
        arguments["atten_mask"] = compressed_causal_mask(query.device)
        if self.sliding_window is None:
            arguments["sparse_mode"] = SPARSE_CAUSAL
        else:
            # A window of w tokens includes the token itself; pre_tokens counts the ones before it.
            arguments.update(sparse_mode=SPARSE_BAND, pre_tokens=self.sliding_window - 1, next_tokens=0)
        return arguments

    def _encoder_arguments(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> dict[str, Any]:
        arguments: dict[str, Any] = {
            "query": pad_heads(query, self.operator_size),
            "key": pad_heads(key, self.operator_size),
            "value": pad_heads(value, self.operator_size),
            "sparse_mode": SPARSE_FULL,
        }
        if self.sliding_window is not None:
            reach = self.sliding_window - 1
            arguments.update(
                sparse_mode=SPARSE_BAND,
                pre_tokens=reach,
                next_tokens=reach,
                atten_mask=compressed_causal_mask(query.device),
            )
        return arguments

    def _attend(
        self,
        layer: AttentionLayer,
        arguments: dict[str, Any],
        query_ends: list[int],
        kv_lengths: list[int],
        out: torch.Tensor,
    ) -> None:
        if self.sinks is None:
            attention = FUSED_ATTENTION
            arguments["num_heads"], arguments["scale"] = self.num_heads * self.repeats, self.scale
        else:
            attention = FUSED_ATTENTION_V2
            arguments["num_query_heads"], arguments["softmax_scale"] = self.num_heads * self.repeats, self.scale
            arguments["learnable_sink"] = self.sinks.repeat_interleave(self.repeats) if self.repeats > 1 else self.sinks
        arguments["num_key_value_heads"], arguments["input_layout"] = self.num_kv_heads, "TND"
        arguments[attention.query_lengths] = query_ends
        arguments[attention.kv_lengths] = kv_lengths
        results = [out, unused_softmax_lse(out.device)]
        if torch.npu.is_current_stream_capturing():
            recording_tasks().capture(layer.layer_name, attention, arguments, results)
        else:
            attention.operator(**arguments, out=results)
