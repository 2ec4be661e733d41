"""The contract between vllm-ascend and its components (MoE, quantisation, speculative decoding, SoC families).

A component is a distribution that declares one entry point in one of the groups

=========================== ===========================================
``vllm_ascend.moe``          fused mixture of experts, expert balancing
``vllm_ascend.quantization`` quantisation configs and schemes
``vllm_ascend.spec_decode``  proposers of draft tokens
``vllm_ascend.soc``          the profile of a further SoC family
=========================== ===========================================

whose value is a :class:`Register` function. It imports vllm-ascend under ``TYPE_CHECKING`` only; the contract is met
structurally. A full example, for an environment without ascend-moe, which claims the same layer: the file
``my_moe/vllm/__init__.py`` of a distribution with the entry point ``moe = "my_moe.vllm:register"``::

    from __future__ import annotations

    from typing import TYPE_CHECKING

    from pydantic import BaseModel, ConfigDict, PositiveInt

    if TYPE_CHECKING:
        from vllm_ascend.api import RegistrationContext


    class MoEConfig(BaseModel):
        '''The section "moe" of --additional-config.'''

        model_config = ConfigDict(frozen=True, extra="forbid")
        chunk_tokens: PositiveInt = 4096  # tokens per dispatch


    def register(context: RegistrationContext) -> None:
        context.require_api(1)
        context.config_section(MoEConfig)
        context.claim_layer("UnquantizedFusedMoEMethod", "my_moe.vllm.method:MyFusedMoEMethod")

``vllm serve … --additional-config '{"moe": {"chunk_tokens": 1024}}'`` then reaches the layer as
``context.config_section(MoEConfig).of(vllm_config).chunk_tokens``.

The contract carries a version, :data:`API_VERSION`: the major number grows when a component has to change.
"""

from vllm_ascend.api.balancer import ExpertBalancer
from vllm_ascend.api.claims import Claim, ClaimKind
from vllm_ascend.api.context import API_VERSION, ConfigSection, Register, RegistrationContext
from vllm_ascend.api.errors import ApiVersionError, ClaimError, ComponentError
from vllm_ascend.api.soc import AscendPlatform, SocProfile

__all__ = [
    "API_VERSION",
    "ApiVersionError",
    "AscendPlatform",
    "Claim",
    "ClaimError",
    "ClaimKind",
    "ComponentError",
    "ConfigSection",
    "ExpertBalancer",
    "Register",
    "RegistrationContext",
    "SocProfile",
]
