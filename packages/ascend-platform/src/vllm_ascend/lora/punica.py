"""vLLM's interface to the products of adapters ("punica"), for NPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from vllm.lora.punica_wrapper.punica_base import PunicaWrapperBase

from vllm_ascend.lora.products import chosen, expand, shrink

if TYPE_CHECKING:
    from vllm.lora.layers import LoRAMapping

NO_ADAPTER = -1


class AscendPunicaWrapper(PunicaWrapperBase):
    """Adds what adapters contribute, in place; shapes are those of the base class's methods.

    Rows are matched with the persistent index buffers by position: a graph, or a batch that is padded for one, has more
    rows than the step has tokens, and what the surplus rows get is never read.
    """

    def __init__(self, max_num_batched_tokens: int, max_batches: int, device: torch.device | str, **kwargs: Any):
        super().__init__(max_num_batched_tokens, max_batches, device, **kwargs)
        # Surplus rows are looked up too, so no entry may ever be out of range.
        self._embeddings_indices.zero_()
        for indices in (self._token_lora_indices, self._sampler_indices, self._sampler_indices_padded):
            indices.fill_(NO_ADAPTER)

    def update_metadata(
        self,
        mapping: LoRAMapping,
        lora_index_to_id: list[int | None],
        max_loras: int,
        vocab_size: int,
        **kwargs: Any,
    ) -> None:
        # The base class would also sort prefills by adapter, for which it waits for the device.
        self._update_base_metadata(mapping, lora_index_to_id, max_loras, vocab_size)
        self.is_prefill = mapping.is_prefill

    def add_shrink(
        self,
        y: Sequence[torch.Tensor] | torch.Tensor,
        x: torch.Tensor,
        lora_a_stacked: tuple[torch.Tensor, ...],
        scale: float,
        **kwargs: Any,
    ) -> None:
        x = x.view(-1, x.shape[-1])
        mask = chosen(self._token_lora_indices[: x.shape[0]], lora_a_stacked[0].shape[0])
        for target, weights in zip(y, lora_a_stacked):
            shrink(target, x, weights, mask, scale)

    def add_expand(
        self,
        y: torch.Tensor,
        x: Sequence[torch.Tensor] | torch.Tensor,
        lora_b_stacked: tuple[torch.Tensor, ...],
        output_slices: tuple[int, ...],
        offset_start: int = 0,
        add_inputs: bool = True,
        **kwargs: Any,
    ) -> None:
        rows = y.view(-1, y.shape[-1])
        mask = chosen(self._token_lora_indices[: rows.shape[0]], lora_b_stacked[0].shape[0])
        for source, weights, width in zip(x, lora_b_stacked, output_slices):
            target = rows[:, offset_start : offset_start + width]
            expand(target if add_inputs else target.zero_(), source, weights[:, :, :width], mask)
            offset_start += width

    def add_lora_embedding(
        self, y: torch.Tensor, x: torch.Tensor, lora_b_stacked: torch.Tensor, add_inputs: bool = True, **kwargs: Any
    ) -> None:
        mask = chosen(self._token_lora_indices[: y.shape[0]], lora_b_stacked.shape[0])
        expand(y if add_inputs else y.zero_(), x, lora_b_stacked, mask)

    def add_lora_linear(
        self,
        y: torch.Tensor,
        x: torch.Tensor,
        lora_a_stacked: tuple[torch.Tensor, ...],
        lora_b_stacked: tuple[torch.Tensor, ...],
        scale: float,
        output_slices: tuple[int, ...],
        *,
        buffer: tuple[torch.Tensor, ...] | None = None,
        **kwargs: Any,
    ) -> None:
        if buffer is None:
            shape = (len(output_slices), x.view(-1, x.shape[-1]).shape[0], lora_b_stacked[0].shape[-1])
            buffer = tuple(torch.zeros(shape, dtype=torch.float32, device=x.device))
        self.add_shrink(buffer, x, lora_a_stacked, scale)
        self.add_expand(y, buffer, lora_b_stacked, output_slices, **kwargs)

    def add_lora_logits(
        self,
        y: torch.Tensor,
        x: torch.Tensor,
        lora_a_stacked: torch.Tensor,
        lora_b_stacked: torch.Tensor,
        scale: float,
        *,
        buffer: torch.Tensor | None = None,
        **kwargs: Any,
    ) -> None:
        rows, x = y.view(-1, y.shape[-1]), x.view(-1, x.shape[-1])
        mask = chosen(self._sampler_indices[: rows.shape[0]], lora_a_stacked.shape[0])
        if buffer is None:
            buffer = torch.zeros(x.shape[0], lora_b_stacked.shape[-1], dtype=torch.float32, device=x.device)
        shrink(buffer, x, lora_a_stacked, mask, scale)
        width = min(rows.shape[1], lora_b_stacked.shape[2])
        expand(rows[:, :width], buffer, lora_b_stacked[:, :, :width], mask)
