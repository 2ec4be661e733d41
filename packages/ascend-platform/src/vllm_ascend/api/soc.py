"""A family of Ascend chips as data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, Protocol

import torch


@dataclass(frozen=True, slots=True, kw_only=True)
class SocProfile:
    """What the platform has to know about one family of chips.

    Attributes:
        name: the family, for example ``"A2"``; what ``VLLM_ASCEND_SOC`` and ``soc_profile`` say.
        chip_names: a regular expression that matches a whole chip name as ``torch.npu.get_device_name`` gives it,
            without regard to case, for example ``"Ascend910B1"``.
        soc_versions: the numbers that ``torch_npu`` reports for the family, as inclusive ranges.
        dtypes: what model weights and activations may be; the first is taken where a model's own is not among them.
        kernel_block_sizes: tokens; a KV cache block is a multiple of one of them, and of the first by default.
        unified_buffer_bytes: on-chip memory of one vector core in bytes, the bound of a Triton tile.
        kv_layout: ``"nd"``, or ``"nz"`` for fractal blocks of 16 × 16.
        weight_layout: ``"nd"``, ``"nz"`` (always fractal), or ``"configurable"``.
        attention_backend: dotted path of the class that answers ``get_attn_backend_cls``.
        graph_modes: the names of vLLM's ``CUDAGraphMode`` that can be captured.
        has_triton: whether Triton kernels can be compiled for the family.
        layers: replaces claims of vllm-ascend and of components: vLLM class name to ``"package.module:Class"``.
    """

    name: str
    chip_names: str
    soc_versions: tuple[tuple[int, int], ...]
    dtypes: tuple[torch.dtype, ...]
    kernel_block_sizes: tuple[int, ...]
    unified_buffer_bytes: int
    kv_layout: Literal["nd", "nz"] = "nd"
    weight_layout: Literal["nd", "nz", "configurable"] = "configurable"
    attention_backend: str = "vllm_ascend.attention.backend.AscendAttentionBackend"
    graph_modes: frozenset[str] = frozenset({"NONE", "PIECEWISE", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE"})
    has_triton: bool = True
    layers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def matches_name(self, chip_name: str) -> bool:
        """Whether a chip of this name belongs to the family."""
        return re.fullmatch(self.chip_names, chip_name, re.IGNORECASE) is not None

    def matches_version(self, soc_version: int) -> bool:
        """Whether torch_npu's SoC number belongs to the family."""
        return any(low <= soc_version <= high for low, high in self.soc_versions)


class AscendPlatform(Protocol):
    """What ``vllm.platforms.current_platform`` offers to components beside vLLM's own questions. Since 1.1."""

    @classmethod
    def soc_profile(cls) -> SocProfile:
        """The SoC family: the detected one in a worker, the engine's configured one elsewhere."""
        ...
