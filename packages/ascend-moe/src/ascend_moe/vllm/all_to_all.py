"""All-to-all as a part of vLLM's modular kernel."""

from __future__ import annotations

from typing import NamedTuple

import torch
import vllm.model_executor.layers.fused_moe.modular_kernel as mk
from vllm.distributed import get_ep_group, get_tp_group, tensor_model_parallel_all_reduce
from vllm.model_executor.layers.fused_moe.config import FusedMoEParallelConfig, FusedMoEQuantConfig
from vllm.v1.worker.workspace import current_workspace_manager

from ascend_moe.comm import AllToAll, ExpertRanks, SameTokens, Tokens
from ascend_moe.comm.all_to_all import Sent
from ascend_moe.routing import Choice
from ascend_moe.vllm.exchange import Exchange, weighted


class _UnderWay(NamedTuple):
    exchange: AllToAll
    tokens: Tokens
    ticket: Sent


class AllToAllExchange(Exchange):
    """Sends each token to the ranks of its experts alone.

    The host has to know how many go where, so a step that is captured uses another exchange. vLLM hands nothing from
    ``prepare`` to ``finalize``; what is under way is kept here between the two.
    """

    def __init__(self, parallel: FusedMoEParallelConfig, when_captured: Exchange, most_rows: int) -> None:
        """Make the exchange of a layer.

        Args:
            parallel: of the layer.
            when_captured: the exchange for steps that are recorded as graphs.
            most_rows: that can come to this rank in a step, if all tokens choose its experts.
        """
        super().__init__()
        self._most_rows = most_rows
        self._ranks = parallel.ep_size
        self._sequence_parallel = parallel.is_sequence_parallel
        self._when_captured = when_captured
        self._under_way: _UnderWay | None = None

    def num_dispatchers(self) -> int:
        """The ranks that tokens come from."""
        return self._ranks

    def output_is_reduced(self) -> bool:
        """Each token's sum is complete, on every rank that holds the token."""
        return True

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
        """A row for each choice of a local expert, with that expert and weight one."""
        if torch.npu.is_current_stream_capturing():
            return self._when_captured.prepare(
                a1, topk_weights, topk_ids, num_experts, expert_map, apply_router_weight_on_input, quant_config
            )
        # vLLM's workspace, which the experts write to, cannot grow once graphs are captured; any step may bring most.
        current_workspace_manager().get_simultaneous(((self._most_rows, a1.shape[1]), a1.dtype))
        hidden = weighted(a1, topk_weights, apply_router_weight_on_input)
        weights = torch.ones_like(topk_weights) if apply_router_weight_on_input else topk_weights
        ranks = ExpertRanks(get_ep_group().device_group, num_experts)
        tensor_parallel = get_tp_group()
        shared = tensor_parallel.world_size > 1 and not self._sequence_parallel
        exchange = AllToAll(ranks, SameTokens(tensor_parallel.device_group) if shared else None)
        tokens = Tokens(hidden, Choice(weights, topk_ids))
        arrived, ticket = exchange.dispatch(exchange.prepare(tokens))
        self._under_way = _UnderWay(exchange, tokens, ticket)
        assert arrived.experts is not None
        return arrived.rows, None, None, arrived.experts + ranks.rank * ranks.local, arrived.weights

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
            self._when_captured.finalize(
                output, fused_expert_output, topk_weights, topk_ids, apply_router_weight_on_input,
                weight_and_reduce_impl,
            )  # fmt: skip
            if not self._sequence_parallel:
                # Tensor parallel ranks, which hold the same tokens, have a share of their experts each.
                output.copy_(tensor_model_parallel_all_reduce(output.clone()))
            return
        exchange, tokens, ticket = self._under_way
        self._under_way = None
        results = weight_and_reduce_impl.apply(
            None, fused_expert_output, topk_weights, topk_ids, apply_router_weight_on_input
        )
        output.copy_(exchange.finalize(exchange.combine(results, ticket), tokens))
