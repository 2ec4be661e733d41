"""vLLM's runner of a mixture-of-experts layer, with routing for Ascend."""

from __future__ import annotations

from typing import Any

from vllm.model_executor.layers.fused_moe.router.fused_moe_router import FusedMoERouter
from vllm.model_executor.layers.fused_moe.runner.moe_runner import MoERunner

from ascend_moe.vllm.router import AscendRouter


class AscendMoERunner(MoERunner):
    """Every class of layers makes its runner by this name, those that derive from vLLM's ``FusedMoE`` too.

    The routers of vLLM's factory call CUDA kernels that its build for other platforms lacks; each is replaced by one
    that does the same.
    """

    def __init__(self, *args: Any, router: FusedMoERouter, **kwargs: Any) -> None:
        super().__init__(*args, router=AscendRouter.instead_of(router, kwargs["layer_name"]), **kwargs)
