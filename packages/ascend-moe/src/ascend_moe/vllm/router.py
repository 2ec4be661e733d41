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

from ascend_moe.routing import choose_route, route_by_table
from ascend_moe.vllm.rules import Ruling, ruling_of


class AscendRouter(BaseRouter):
    """Does what one of vLLM's routers would.

    Routers with a function of their own, a model's or one that simulates a load, keep it: it is made of torch
    operators. All others follow a :class:`ascend_moe.routing.Rule`.
    """

    def __init__(self, stock: BaseRouter) -> None:
        super().__init__(stock.top_k, stock.global_num_experts, stock.eplb_state, stock.indices_type_getter)
        self._stock = stock

    @classmethod
    def instead_of(cls, router: FusedMoERouter, layer_name: str) -> Self:
        """The replacement of a router of vLLM's factory.

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
        return cls(router)

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
        ruling = ruling_of(self._stock, router_logits.shape[-1])
        if ruling is None:
            return self._stock._compute_routing(hidden_states, router_logits, indices_type, input_ids=input_ids)
        return _follow(ruling, router_logits, input_ids)


def _follow(ruling: Ruling, logits: torch.Tensor, input_ids: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
    rule, bias, table = ruling
    if table is not None:
        if input_ids is None:
            raise ValueError("experts are looked up by token, but the layer was called without input_ids")
        return route_by_table(rule, logits, input_ids, table)
    return choose_route(rule, logits.shape[-1])(rule, logits, bias)
