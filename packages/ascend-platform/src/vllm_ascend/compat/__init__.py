"""Which vLLM releases this version serves. Differences between releases are bridged in this package alone."""

from vllm_ascend.compat.vllm_release import (
    SUPPORTED_VLLM,
    UnsupportedVllmError,
    check_vllm,
    installed_vllm_version,
)

__all__ = [
    "SUPPORTED_VLLM",
    "UnsupportedVllmError",
    "check_vllm",
    "installed_vllm_version",
]
