"""Models whose every layer attends to all earlier tokens: token for token transformers' continuation."""

import pytest

from ascend_integration.engine.grid import OPPOSITE_SETTINGS, PAIRWISE_SETTINGS

from .equality_checks import EqualityChecks, grid


@pytest.mark.parametrize(
    "served",
    [
        *grid(["llama"], PAIRWISE_SETTINGS),
        # They differ from Llama in their layers, not in how the cache is read: two engines each.
        *grid(["llama-mha", "llama-mqa", "qwen2", "qwen3", "phi3"], OPPOSITE_SETTINGS),
    ],
    indirect=True,
)
class TestFullAttention(EqualityChecks):
    pass
