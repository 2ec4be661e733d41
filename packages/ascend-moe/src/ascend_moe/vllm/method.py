"""vLLM's method for experts without quantisation, on Ascend."""

from __future__ import annotations

from typing import Any

import torch
import vllm.model_executor.layers.fused_moe.modular_kernel as mk
from vllm.model_executor.layers.fused_moe.config import FusedMoEConfig
from vllm.model_executor.layers.fused_moe.unquantized_fused_moe_method import UnquantizedFusedMoEMethod
from vllm.model_executor.utils import set_weight_attrs

from ascend_moe.experts import bias_dtype
from ascend_moe.vllm.choice import exchange_of
from ascend_moe.vllm.experts import GroupedMatmulExperts


class AscendUnquantizedFusedMoEMethod(UnquantizedFusedMoEMethod):
    """Composes the exchange between ranks and :class:`GroupedMatmulExperts` to vLLM's modular kernel.

    Weights stay in the layout in which vLLM loads them, so that loading again or moving an expert is a plain copy.
    """

    def __init__(self, moe: FusedMoEConfig) -> None:
        super().__init__(moe)
        self.experts_cls = GroupedMatmulExperts
        self._exchange = exchange_of(moe)
        supported, reason = GroupedMatmulExperts.is_supported_config(
            GroupedMatmulExperts, moe, None, None, GroupedMatmulExperts.activation_format()
        )
        if not supported:
            raise NotImplementedError(f"ascend-moe cannot compute these experts: {reason}")

    def create_weights(
        self,
        layer: torch.nn.Module,
        num_experts: int,
        hidden_size: int,
        intermediate_size_per_partition: int,
        params_dtype: torch.dtype,
        **extra_weight_attrs: Any,
    ) -> None:
        """As vLLM's, with biases in the dtype that the grouped product takes."""
        super().create_weights(
            layer, num_experts, hidden_size, intermediate_size_per_partition, params_dtype, **extra_weight_attrs
        )
        if not self.moe.has_bias:
            return
        for name in ("w13_bias", "w2_bias"):
            bias = getattr(layer, name)
            wanted = torch.nn.Parameter(bias.data.to(bias_dtype(params_dtype)), requires_grad=False)
            layer.register_parameter(name, wanted)
            set_weight_attrs(wanted, extra_weight_attrs)

    def process_weights_after_loading(self, layer: torch.nn.Module) -> None:
        """Make the kernel on the first call; later ones, after weights were loaded again, have nothing to do."""
        if self.moe_kernel is not None:
            return
        self.moe_quant_config = self.get_fused_moe_quant_config(layer)
        experts = GroupedMatmulExperts(self.moe, self.moe_quant_config)
        self.moe_kernel = mk.FusedMoEKernel(self._exchange, experts)
