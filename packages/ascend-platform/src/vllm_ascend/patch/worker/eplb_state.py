"""What balances experts in vLLM's model runner."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from vllm_ascend.api import ClaimKind, ComponentError
from vllm_ascend.patch import patch
from vllm_ascend.plugins import registry
from vllm_ascend.plugins.commit import load_claim
from vllm_ascend.plugins.groups import MOE

if TYPE_CHECKING:
    import torch
    from vllm.config import ParallelConfig

    from vllm_ascend.api import ExpertBalancer


@patch(
    target="vllm.v1.worker.gpu_model_runner:EplbState",
    stage="worker",
    reason="vLLM's balancer makes CUDA events and streams, and there is no registry for another one",
    versions=">=0.23,<0.24",
    digest="725e1edb359ea5a3",
)
def make_balancer(parallel_config: ParallelConfig, device: torch.device) -> ExpertBalancer:
    """The balancer that a component claims.

    Raises:
        ComponentError: no component does.
    """
    components = registry()
    claim = components.claim(ClaimKind.EXPERT_BALANCER, "eplb")
    if claim is None:
        raise ComponentError(components.missing(MOE, "--enable-eplb"))
    return cast("ExpertBalancer", load_claim(claim)(parallel_config, device))
