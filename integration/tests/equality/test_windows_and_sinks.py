"""Models with sliding windows, mixed layers or attention sinks: token for token transformers' continuation."""

import pytest

from ascend_integration.engine.grid import PAIRWISE_SETTINGS

from .equality_checks import EqualityChecks, grid


@pytest.mark.parametrize("served", grid(["mistral", "gemma3", "sinks"], PAIRWISE_SETTINGS), indirect=True)
class TestWindowsAndSinks(EqualityChecks):
    pass
