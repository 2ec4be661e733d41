"""vLLM's platform object for Ascend NPUs."""

from vllm_ascend.platform.platform import AscendPlatform

__all__ = ["AscendPlatform"]
