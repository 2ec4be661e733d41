"""The SoC families that vllm-ascend knows, and which of them this process runs on."""

from vllm_ascend.soc.profiles import BUILT_IN, DEFAULT_PROFILE
from vllm_ascend.soc.select import SOC_VARIABLE, SocError, active_profile, configured_profile, detect, identify

__all__ = [
    "BUILT_IN",
    "DEFAULT_PROFILE",
    "SOC_VARIABLE",
    "SocError",
    "active_profile",
    "configured_profile",
    "detect",
    "identify",
]
