"""The exchange of tokens between ranks as a part of vLLM's modular kernel."""

from __future__ import annotations

import torch
import vllm.model_executor.layers.fused_moe.modular_kernel as mk
from vllm.distributed import get_dp_group, get_ep_group
from vllm.distributed.parallel_state import GroupCoordinator
from vllm.forward_context import get_forward_context
from vllm.model_executor.layers.fused_moe.config import FusedMoEParallelConfig, FusedMoEQuantConfig


class Exchange(mk.FusedMoEPrepareAndFinalizeModular):
    """What all exchanges of tokens by rows have in common."""

    @property
    def activation_format(self) -> mk.FusedMoEActivationFormat:
        """Tokens by rows."""
        return mk.FusedMoEActivationFormat.Standard

    def topk_indices_dtype(self) -> torch.dtype | None:
        """What the vendor's sorting takes."""
        return torch.int32

    def max_num_tokens_per_rank(self) -> int | None:
        """No limit."""
        return None

    def output_is_reduced(self) -> bool:
        """The sum over the tensor parallel ranks is the runner's, together with the shared experts'."""
        return False


class NoExchange(Exchange):
    """Every token is already where its experts are: tensor parallel ranks hold the same tokens."""

    def num_dispatchers(self) -> int:
        """This rank."""
        return 1

    def prepare(
        self,
        a1: torch.Tensor,
        topk_weights: torch.Tensor,
        topk_ids: torch.Tensor,
        num_experts: int,
        expert_map: torch.Tensor | None,
        apply_router_weight_on_input: bool,
        quant_config: FusedMoEQuantConfig,
        defer_input_quant: bool = False,
    ) -> mk.PrepareResultType:
        """The tokens as they are, or times their weights."""
        return weighted(a1, topk_weights, apply_router_weight_on_input), None, None, None, None

    def finalize(
        self,
        output: torch.Tensor,
        fused_expert_output: torch.Tensor,
        topk_weights: torch.Tensor,
        topk_ids: torch.Tensor,
        apply_router_weight_on_input: bool,
        weight_and_reduce_impl: mk.TopKWeightAndReduce,
    ) -> None:
        """Write the experts' results to ``output``."""
        weight_and_reduce_impl.apply(output, fused_expert_output, topk_weights, topk_ids, apply_router_weight_on_input)


class AllGather(Exchange):
    """Every data parallel rank gets all tokens, computes its experts' share, and gets the sums of its tokens back.

    With sequence parallelism tokens are spread over the tensor parallel ranks too.
    """

    def __init__(self, parallel: FusedMoEParallelConfig) -> None:
        super().__init__()
        self._sequence_parallel = parallel.is_sequence_parallel
        self._ranks = parallel.dp_size

    def num_dispatchers(self) -> int:
        """The ranks that tokens come from."""
        return self._ranks

    def prepare(
        self,
        a1: torch.Tensor,
        topk_weights: torch.Tensor,
        topk_ids: torch.Tensor,
        num_experts: int,
        expert_map: torch.Tensor | None,
        apply_router_weight_on_input: bool,
        quant_config: FusedMoEQuantConfig,
        defer_input_quant: bool = False,
    ) -> mk.PrepareResultType:
        """All ranks' tokens, and their experts and weights."""
        tokens = weighted(a1, topk_weights, apply_router_weight_on_input)
        tokens, weights, experts = self._group().all_gatherv([tokens, topk_weights, topk_ids], 0, _sizes())
        return tokens, None, None, experts, weights

    def finalize(
        self,
        output: torch.Tensor,
        fused_expert_output: torch.Tensor,
        topk_weights: torch.Tensor,
        topk_ids: torch.Tensor,
        apply_router_weight_on_input: bool,
        weight_and_reduce_impl: mk.TopKWeightAndReduce,
    ) -> None:
        """Add up the ranks' shares and write those of this rank's tokens to ``output``."""
        share = weight_and_reduce_impl.apply(
            None, fused_expert_output, topk_weights, topk_ids, apply_router_weight_on_input
        )
        output.copy_(self._group().reduce_scatterv(share, 0, _sizes()))

    def _group(self) -> GroupCoordinator:
        return get_ep_group() if self._sequence_parallel else get_dp_group()


def _sizes() -> list[int]:
    """Tokens of every rank in this step."""
    return get_forward_context().dp_metadata.get_chunk_sizes_across_dp_rank()


def weighted(tokens: torch.Tensor, weights: torch.Tensor, on_input: bool) -> torch.Tensor:
    """Tokens times the weights of their experts, if the model wants them there, else as they are.

    Raises:
        ValueError: several experts a token, which get the same input.
    """
    if not on_input:
        return tokens
    if weights.shape[1] != 1:
        raise ValueError(f"weights can be applied to the input of one expert a token, there are {weights.shape[1]}")
    return tokens * weights.to(tokens.dtype)
