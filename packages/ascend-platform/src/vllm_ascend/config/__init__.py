"""The typed, immutable form of ``--additional-config``."""

from vllm_ascend.config.ascend_config import AscendConfig
from vllm_ascend.config.errors import ConfigError

__all__ = ["AscendConfig", "ConfigError"]
