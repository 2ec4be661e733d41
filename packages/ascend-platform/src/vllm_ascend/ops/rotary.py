"""Rotary position embedding on ``npu_mrope``: query and key in one operator that gathers cos and sin itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import torch
from vllm.model_executor.custom_op import CustomOp
from vllm.model_executor.layers.rotary_embedding.base import RotaryEmbedding
from vllm.model_executor.layers.rotary_embedding.dynamic_ntk_alpha_rope import DynamicNTKAlphaRotaryEmbedding
from vllm.model_executor.layers.rotary_embedding.dynamic_ntk_scaling_rope import DynamicNTKScalingRotaryEmbedding
from vllm.model_executor.layers.rotary_embedding.linear_scaling_rope import LinearScalingRotaryEmbedding
from vllm.model_executor.layers.rotary_embedding.llama3_rope import Llama3RotaryEmbedding
from vllm.model_executor.layers.rotary_embedding.ntk_scaling_rope import NTKScalingRotaryEmbedding
from vllm.model_executor.layers.rotary_embedding.yarn_scaling_rope import YaRNScalingRotaryEmbedding

if TYPE_CHECKING:
    _Base: TypeAlias = RotaryEmbedding
else:
    _Base = object

ROTARY_DIM_BYTES = 64
"""``npu_mrope`` wants the rotated part of a head to be a multiple of 64 bytes: 32 half or 16 single precision ones."""


def operator_supports(rotary_dim: int, dtype: torch.dtype) -> bool:
    """Whether ``npu_mrope`` takes heads of which ``rotary_dim`` elements are rotated (its documented constraint)."""
    return rotary_dim * dtype.itemsize % ROTARY_DIM_BYTES == 0


class AscendRotary(_Base):
    """The device method shared by every embedding that differs only in its cos/sin table.

    Neox style rotates the two halves of the first ``rotary_dim`` elements of a head against each other, the other style
    neighbouring pairs: ``y1 = x1 * cos - x2 * sin``, ``y2 = x2 * cos + x1 * sin``; the rest of the head is copied.
    """

    def forward_oot(
        self, positions: torch.Tensor, query: torch.Tensor, key: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        if key is None or not operator_supports(self.rotary_dim, query.dtype):
            return self.forward_native(positions, query, key)
        tokens = positions.numel()
        rotated_query, rotated_key = torch.ops.npu.npu_mrope(
            positions.flatten(),
            query.reshape(tokens, -1),
            key.reshape(tokens, -1),
            self._match_cos_sin_cache_dtype(query),
            self.head_size,
            mrope_section=[0, 0, 0],
            rotary_mode="half" if self.is_neox_style else "interleave",
        )
        return rotated_query.view(query.shape), rotated_key.view(key.shape)


class AscendRotaryEmbedding(AscendRotary, RotaryEmbedding):
    """Plain rotary embedding."""


class AscendLinearScalingRotaryEmbedding(AscendRotary, LinearScalingRotaryEmbedding):
    """Linear position scaling."""


class AscendNTKScalingRotaryEmbedding(AscendRotary, NTKScalingRotaryEmbedding):
    """NTK-aware base scaling."""


class AscendDynamicNTKScalingRotaryEmbedding(AscendRotary, DynamicNTKScalingRotaryEmbedding):
    """Dynamic NTK scaling by factor."""


class AscendDynamicNTKAlphaRotaryEmbedding(AscendRotary, DynamicNTKAlphaRotaryEmbedding):
    """Dynamic NTK scaling by alpha."""


class AscendLlama3RotaryEmbedding(AscendRotary, Llama3RotaryEmbedding):
    """Llama 3 frequency-dependent scaling."""


class AscendYaRNScalingRotaryEmbedding(AscendRotary, YaRNScalingRotaryEmbedding):
    """YaRN scaling."""


ROTARY_EMBEDDINGS: dict[type[CustomOp], type[CustomOp]] = {
    RotaryEmbedding: AscendRotaryEmbedding,
    LinearScalingRotaryEmbedding: AscendLinearScalingRotaryEmbedding,
    NTKScalingRotaryEmbedding: AscendNTKScalingRotaryEmbedding,
    DynamicNTKScalingRotaryEmbedding: AscendDynamicNTKScalingRotaryEmbedding,
    DynamicNTKAlphaRotaryEmbedding: AscendDynamicNTKAlphaRotaryEmbedding,
    Llama3RotaryEmbedding: AscendLlama3RotaryEmbedding,
    YaRNScalingRotaryEmbedding: AscendYaRNScalingRotaryEmbedding,
}
"""vLLM's class and the one that replaces it."""
