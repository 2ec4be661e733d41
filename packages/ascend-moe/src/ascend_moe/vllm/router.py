"""A router that vLLM's runner can use on Ascend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import torch
from vllm.model_executor.layers.fused_moe.config import RoutingMethodType
from vllm.model_executor.layers.fused_moe.router.base_router import BaseRouter
from vllm.model_executor.layers.fused_moe.router.custom_routing_router import CustomRoutingRouter
from vllm.model_executor.layers.fused_moe.router.fused_moe_router import FusedMoERouter
from vllm.model_executor.layers.fused_moe.router.routing_simulator_router import RoutingSimulatorRouter

from ascend_moe.routing import choose_replicas, choose_route, count_choices, route_by_table, route_evenly
from ascend_moe.vllm.rules import Ruling, ruling_of


class AscendRouter(BaseRouter):
    """Does what one of vLLM's routers would.

    Routers with a function of their own, a model's or one that simulates a load, keep it: it is made of torch
    operators. All others follow a :class:`ascend_moe.routing.Rule`.
    """

    def __init__(self, stock: BaseRouter, first_turn: int = 0, even_load: bool = False) -> None:
        super().__init__(stock.top_k, stock.global_num_experts, stock.eplb_state, stock.indices_type_getter)
        self._stock = stock
        self._first_turn = first_turn
        self._even_load = even_load

    @classmethod
    def instead_of(cls, router: FusedMoERouter, layer_name: str, first_turn: int = 0, even_load: bool = False) -> Self:
        """The replacement of a router of vLLM's factory.

        Args:
            router: to be replaced.
            layer_name: for messages.
            first_turn: see :func:`ascend_moe.routing.choose_replicas`.
            even_load: deal the experts to the tokens evenly, whatever the logits are.

        Raises:
            NotImplementedError: a kind of router that has no replacement; names it and the layer.
        """
        own_function = isinstance(router, CustomRoutingRouter | RoutingSimulatorRouter)
        if not own_function and ruling_of(router, experts=1) is None:
            raise NotImplementedError(
                f"{layer_name} is routed by vLLM's {type(router).__name__}, which ascend-moe does not implement; it "
                "implements top-k routing by softmax, sigmoid and sqrtsoftplus, grouped and with correction bias, "
                "tables by token, and functions of the model's own"
            )
        assert isinstance(router, BaseRouter)
        return cls(router, first_turn, even_load)

    @property
    def capture_fn(self) -> Callable[[torch.Tensor], None] | None:
        """Who wants to see the logical experts; vLLM tells the router that the layer was made with."""
        return self._stock.capture_fn

    @capture_fn.setter
    def capture_fn(self, function: Callable[[torch.Tensor], None] | None) -> None:
        # BaseRouter's constructor sets None before there is a router to ask.
        if function is not None:
            self._stock.set_capture_fn(function)

    @property
    def routing_method_type(self) -> RoutingMethodType:
        """As vLLM's own router says."""
        return self._stock.routing_method_type

    def _compute_routing(
        self,
        hidden_states: torch.Tensor,
        router_logits: torch.Tensor,
        indices_type: torch.dtype | None,
        *,
        input_ids: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if self._even_load:
            return route_evenly(len(router_logits), router_logits.shape[-1], self.top_k, router_logits.device)
        ruling = ruling_of(self._stock, router_logits.shape[-1])
        if ruling is None:
            return self._stock._compute_routing(hidden_states, router_logits, indices_type, input_ids=input_ids)
        return _follow(ruling, router_logits, input_ids)

    def _apply_eplb_mapping(self, topk_ids: torch.Tensor) -> torch.Tensor:
        """Physical experts, counted; vLLM's own does this on CUDA devices alone, and nothing elsewhere."""
        state = self.eplb_state
        if state is None:
            return topk_ids
        # select_experts has checked that the balancer has set them.
        assert state.logical_to_physical_map is not None
        assert state.logical_replica_count is not None
        assert state.expert_load_view is not None
        assert state.should_record_tensor is not None
        physical = choose_replicas(
            topk_ids, state.logical_to_physical_map, state.logical_replica_count, self._first_turn
        )
        count_choices(state.expert_load_view, physical, state.should_record_tensor)
        return physical


def _follow(ruling: Ruling, logits: torch.Tensor, input_ids: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
    rule, bias, table = ruling
    if table is not None:
        if input_ids is None:
            raise ValueError("experts are looked up by token, but the layer was called without input_ids")
        return route_by_table(rule, logits, input_ids, table)
    return choose_route(rule, logits.shape[-1])(rule, logits, bias)
