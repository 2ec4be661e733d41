"""vLLM's runner of a mixture-of-experts layer, with routing for Ascend."""

from __future__ import annotations

from typing import Any

from vllm.config import get_current_vllm_config
from vllm.model_executor.layers.fused_moe.router.fused_moe_router import FusedMoERouter
from vllm.model_executor.layers.fused_moe.runner.moe_runner import MoERunner

from ascend_moe.vllm.config import MoEConfig
from ascend_moe.vllm.router import AscendRouter
from ascend_moe.vllm.shared_experts import AscendSharedExperts


class AscendMoERunner(MoERunner):
    """Every class of layers makes its runner by this name, those that derive from vLLM's ``FusedMoE`` too.

    The routers of vLLM's factory call CUDA kernels that its build for other platforms lacks; each is replaced by one
    that does the same. Shared experts run on a second stream.
    """

    def __init__(self, *args: Any, router: FusedMoERouter, **kwargs: Any) -> None:
        layer_config = kwargs["moe_config"]
        ascend = AscendRouter.instead_of(
            router,
            kwargs["layer_name"],
            first_turn=layer_config.moe_parallel_config.dp_rank,
            even_load=MoEConfig.of(get_current_vllm_config()).even_load,
        )
        super().__init__(*args, router=ascend, **kwargs)
        if self._shared_experts is not None:
            self._shared_experts = AscendSharedExperts(
                kwargs["shared_experts"], layer_config, kwargs["quant_method"], kwargs["enable_dbo"]
            )
