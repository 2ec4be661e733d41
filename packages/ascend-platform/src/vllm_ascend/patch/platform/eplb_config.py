"""vLLM's refusal of ``--enable-eplb`` off CUDA and ROCm."""

from __future__ import annotations

from typing import Any

import vllm.platforms

from vllm_ascend.patch import patch


class BalancingPlatform:
    """The platform as ``vllm.config.parallel`` sees it: one whose experts can be balanced, otherwise itself."""

    def is_cuda_alike(self) -> bool:
        """What that module asks before it allows expert load balancing, and for nothing else."""
        return True

    def __getattr__(self, name: str) -> Any:
        return getattr(vllm.platforms.current_platform, name)


patch(
    target="vllm.config.parallel:current_platform",
    stage="platform",
    reason="the validation of --enable-eplb refuses every platform but CUDA and ROCm, and pydantic has compiled it in",
    versions=">=0.23,<0.24",
    digest="759c830ce41d4231",
    reader="vllm.config.parallel:ParallelConfig._validate_parallel_config",
)(BalancingPlatform())
