"""Loggers that vLLM's logging configuration reaches, and messages that appear once per process."""

from __future__ import annotations

import logging
from functools import lru_cache


def get_logger(name: str) -> logging.Logger:
    """The logger of one of our modules.

    vLLM configures the logger ``vllm`` and what lies below it, so ours are named ``vllm.vllm_ascend…``.
    """
    from vllm.logger import init_logger

    return init_logger(f"vllm.{name}")


@lru_cache(maxsize=1024)
def _once(logger: logging.Logger, level: int, text: str) -> None:
    logger.log(level, text, stacklevel=3)


def log_once(logger: logging.Logger, level: int, message: str, *arguments: object) -> None:
    """Log a message once per process and text. The arguments are rendered first, so they need not be hashable."""
    _once(logger, level, message % arguments if arguments else message)
