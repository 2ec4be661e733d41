"""Experts without quantisation as a part of vLLM's modular kernel."""

from __future__ import annotations

import torch
import vllm.model_executor.layers.fused_moe.modular_kernel as mk
from vllm.model_executor.layers.fused_moe.activation import MoEActivation
from vllm.model_executor.layers.fused_moe.config import FusedMoEParallelConfig
from vllm.model_executor.layers.fused_moe.topk_weight_and_reduce import TopKWeightAndReduceNoOP
from vllm.model_executor.layers.quantization.utils.quant_utils import QuantKey
from vllm.platforms import current_platform

from ascend_moe.experts import Activation, ExpertWeights, Gate, compute, expert_mlp
from ascend_moe.routing import Choice

_ACTIVATIONS = {str(gate) for gate in Gate}


class GroupedMatmulExperts(mk.FusedMoEExpertsModular):
    """Sorts the tokens by expert, multiplies, adds up: weights and reduces by itself, see :mod:`ascend_moe.experts`.

    ``w1`` is [local experts, 2 * intermediate, hidden], ``w2`` [local experts, hidden, intermediate], as loaded.
    """

    @staticmethod
    def activation_format() -> mk.FusedMoEActivationFormat:
        """Tokens by rows."""
        return mk.FusedMoEActivationFormat.Standard

    @staticmethod
    def _supports_current_device() -> bool:
        return current_platform.device_name == "npu"

    @staticmethod
    def _supports_no_act_and_mul() -> bool:
        return False

    @staticmethod
    def _supports_quant_scheme(weight_key: QuantKey | None, activation_key: QuantKey | None) -> bool:
        return weight_key is None and activation_key is None

    @staticmethod
    def _supports_activation(activation: MoEActivation) -> bool:
        return activation.value in _ACTIVATIONS

    @staticmethod
    def _supports_parallel_config(moe_parallel_config: FusedMoEParallelConfig) -> bool:
        return True

    def workspace_shapes(
        self,
        M: int,  # noqa: N803  vLLM's names
        N: int,  # noqa: N803
        K: int,  # noqa: N803
        topk: int,
        global_num_experts: int,
        local_num_experts: int,
        expert_tokens_meta: mk.ExpertTokensMetadata | None,
        activation: MoEActivation,
    ) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """No workspace but the result: the vendor's operators allocate theirs."""
        return (0,), (0,), (M, K)

    def finalize_weight_and_reduce_impl(self) -> mk.TopKWeightAndReduce:
        """Nothing is left to do."""
        return TopKWeightAndReduceNoOP()

    def apply(
        self,
        output: torch.Tensor,
        hidden_states: torch.Tensor,
        w1: torch.Tensor,
        w2: torch.Tensor,
        topk_weights: torch.Tensor,
        topk_ids: torch.Tensor,
        activation: MoEActivation,
        global_num_experts: int,
        expert_map: torch.Tensor | None,
        a1q_scale: torch.Tensor | None,
        a2_scale: torch.Tensor | None,
        workspace13: torch.Tensor,
        workspace2: torch.Tensor,
        expert_tokens_meta: mk.ExpertTokensMetadata | None,
        apply_router_weight_on_input: bool,
    ) -> None:
        """Write the weighted sum of each row's local experts to ``output`` [rows, hidden].

        With ``expert_tokens_meta`` the rows are sorted by expert, and ``output`` gets each row's result.
        """
        expert_weights = ExpertWeights(w1, w2, self.w1_bias, self.w2_bias)
        kind = Activation.of(activation, self.moe_config.swiglu_limit)
        if expert_tokens_meta is not None:
            output.copy_(expert_mlp(hidden_states, expert_tokens_meta.expert_num_tokens, expert_weights, kind))
            return
        # The rows were multiplied by their weights already, as Llama-4 wants it.
        weights = torch.ones_like(topk_weights) if apply_router_weight_on_input else topk_weights
        output.copy_(
            compute(
                hidden_states,
                Choice(weights, topk_ids),
                expert_weights,
                kind,
                expert_map,
            )
        )
