"""The binding to vLLM: what the entry point in the group ``vllm_ascend.moe`` names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascend_moe.vllm.config import MoEConfig

if TYPE_CHECKING:
    from vllm_ascend.api import RegistrationContext


def register(context: RegistrationContext) -> None:
    """Claim vLLM's runner of mixture-of-experts layers, its method without quantisation, and the balancer of experts.

    The section ``moe`` of ``--additional-config`` is :class:`ascend_moe.vllm.config.MoEConfig`.

    Raises:
        ApiVersionError: the platform implements another contract.
    """
    context.require_api(1, 1)
    context.config_section(MoEConfig)
    context.claim_layer("MoERunner", "ascend_moe.vllm.runner:AscendMoERunner")
    context.claim_layer("UnquantizedFusedMoEMethod", "ascend_moe.vllm.method:AscendUnquantizedFusedMoEMethod")
    context.claim_expert_balancer("ascend_moe.vllm.balancer:EngineBalancer")
