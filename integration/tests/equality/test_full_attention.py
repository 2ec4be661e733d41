"""Models whose every layer attends to all earlier tokens: token for token transformers' continuation."""

import pytest

from ascend_integration.engine.grid import PAIRWISE_SETTINGS

from .equality_checks import EqualityChecks, grid


@pytest.mark.parametrize(
    "served", grid(["llama", "llama-mha", "llama-mqa", "qwen2", "qwen3", "phi3"], PAIRWISE_SETTINGS), indirect=True
)
class TestFullAttention(EqualityChecks):
    pass
