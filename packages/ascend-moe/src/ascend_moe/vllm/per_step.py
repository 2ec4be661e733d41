"""The exchange that suits each step, as a part of vLLM's modular kernel."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import vllm.model_executor.layers.fused_moe.modular_kernel as mk
from vllm.distributed import get_ep_group, get_tp_group, tensor_model_parallel_all_reduce
from vllm.forward_context import get_forward_context
from vllm.model_executor.layers.fused_moe.config import FusedMoEParallelConfig, FusedMoEQuantConfig
from vllm.v1.worker.workspace import current_workspace_manager

from ascend_moe.comm import (
    AllToAll,
    Arrived,
    ExpertRanks,
    FusedDispatch,
    Method,
    SameTokens,
    Tokens,
    choose_method,
)
from ascend_moe.comm.exchange import Exchange as Core
from ascend_moe.routing import Choice
from ascend_moe.vllm.exchange import Exchange, weighted
from ascend_moe.vllm.layer_facts import LayerFacts


class _UnderWay(NamedTuple):
    exchange: Core[Any]
    tokens: Tokens
    ticket: Any


class PerStepExchange(Exchange):
    """Chooses an exchange for every step: all-gather, all-to-all, or the vendor's fused operators.

    All ranks choose alike: the choice depends on the rank with most tokens, and vLLM lets all or no data parallel rank
    replay graphs. vLLM hands nothing from ``prepare`` to ``finalize``; what is under way is kept here between the two.
    """

    def __init__(
        self, parallel: FusedMoEParallelConfig, layer: LayerFacts, gather: Exchange, wanted: Method | None
    ) -> None:
        """Make the exchange of a layer.

        Args:
            parallel: of the layer.
            layer: see there.
            gather: all-gather, for the steps that use it.
            wanted: the method that a user wants; None chooses by :func:`ascend_moe.comm.choose_method` alone.
        """
        super().__init__()
        self._parallel = parallel
        self._layer = layer
        self._gather = gather
        self._wanted = wanted
        self._under_way: _UnderWay | None = None

    def num_dispatchers(self) -> int:
        """The ranks that tokens come from."""
        return self._parallel.ep_size

    def output_is_reduced(self) -> bool:
        """Each token's sum is complete, on every rank that holds the token."""
        return True

    def method_of(self, tokens: torch.Tensor) -> Method:
        """The method of the step that these tokens [tokens, hidden] belong to."""
        most = self._most_tokens_of_a_rank(len(tokens))
        step = self._layer.step(most, tokens.dtype, captured=torch.npu.is_current_stream_capturing())
        return choose_method(step, self._wanted)

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
        """The rows of local experts.

        From all-to-all a row for each choice, with that expert and weight one. From the fused operators rows sorted by
        expert, with their counts as ``expert_tokens_meta``; the experts and weights are then without meaning.
        """
        method = self.method_of(a1)
        self._reserve(a1, num_experts)
        if method is Method.ALL_GATHER:
            return self._gather.prepare(
                a1, topk_weights, topk_ids, num_experts, expert_map, apply_router_weight_on_input, quant_config
            )
        hidden = weighted(a1, topk_weights, apply_router_weight_on_input)
        weights = torch.ones_like(topk_weights) if apply_router_weight_on_input else topk_weights
        ranks = ExpertRanks(get_ep_group().device_group, num_experts)
        exchange = self._exchange(method, ranks)
        tokens = Tokens(hidden, Choice(weights, topk_ids))
        arrived, ticket = exchange.dispatch(exchange.prepare(tokens))
        self._under_way = _UnderWay(exchange, tokens, ticket)
        return _as_prepared(arrived, ranks)

    def finalize(
        self,
        output: torch.Tensor,
        fused_expert_output: torch.Tensor,
        topk_weights: torch.Tensor,
        topk_ids: torch.Tensor,
        apply_router_weight_on_input: bool,
        weight_and_reduce_impl: mk.TopKWeightAndReduce,
    ) -> None:
        """Send the results back and write each token's weighted sum to ``output``."""
        if self._under_way is None:
            self._gather.finalize(
                output, fused_expert_output, topk_weights, topk_ids, apply_router_weight_on_input,
                weight_and_reduce_impl,
            )  # fmt: skip
            if not self._parallel.is_sequence_parallel:
                # Tensor parallel ranks, which hold the same tokens, have a share of their experts each.
                output.copy_(tensor_model_parallel_all_reduce(output.clone()))
            return
        exchange, tokens, ticket = self._under_way
        self._under_way = None
        results = weight_and_reduce_impl.apply(
            None, fused_expert_output, topk_weights, topk_ids, apply_router_weight_on_input
        )
        output.copy_(exchange.finalize(exchange.combine(results, ticket), tokens))

    def _most_tokens_of_a_rank(self, here: int) -> int:
        metadata = get_forward_context().dp_metadata
        most = here if metadata is None else max(metadata.get_chunk_sizes_across_dp_rank())
        # Tensor parallel ranks send a part of their tokens each.
        return most if self._parallel.is_sequence_parallel else -(-most // get_tp_group().world_size)

    def _reserve(self, tokens: torch.Tensor, num_experts: int) -> None:
        """Let vLLM's workspace, which the experts write to, have its full size: once graphs are captured it is fixed.

        Any step may bring a row for every token of every rank.
        """
        layer, ranks = self._layer, self._parallel.ep_size
        rows = layer.most_tokens * ranks * min(layer.top_k, num_experts // ranks)
        current_workspace_manager().get_simultaneous(((rows, tokens.shape[1]), tokens.dtype))

    def _exchange(self, method: Method, ranks: ExpertRanks) -> Core[Any]:
        group = get_tp_group()
        shared = group.world_size > 1 and not self._parallel.is_sequence_parallel
        same = SameTokens(group.device_group) if shared else None
        if method is Method.ALL_TO_ALL:
            return AllToAll(ranks, same)
        return FusedDispatch(ranks, self._layer.capacity, same)


def _as_prepared(arrived: Arrived, ranks: ExpertRanks) -> mk.PrepareResultType:
    if arrived.counts is not None:
        rows = len(arrived.rows)
        experts = torch.zeros(rows, 1, dtype=torch.int32, device=arrived.rows.device)
        weights = torch.ones(rows, 1, device=arrived.rows.device)
        meta = mk.ExpertTokensMetadata(expert_num_tokens=arrived.counts, expert_num_tokens_cpu=None)
        return arrived.rows, None, meta, experts, weights
    assert arrived.experts is not None
    return arrived.rows, None, None, arrived.experts + ranks.rank * ranks.local, arrived.weights
