"""The binding to vLLM: what the entry point in the group ``vllm_ascend.moe`` names."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vllm_ascend.api import RegistrationContext


def register(context: RegistrationContext) -> None:
    """Claim vLLM's runner of mixture-of-experts layers, for the routing, and its method without quantisation.

    Raises:
        ApiVersionError: the platform implements another contract.
    """
    context.require_api(1, 0)
    context.claim_layer("MoERunner", "ascend_moe.vllm.runner:AscendMoERunner")
    context.claim_layer("UnquantizedFusedMoEMethod", "ascend_moe.vllm.method:AscendUnquantizedFusedMoEMethod")
