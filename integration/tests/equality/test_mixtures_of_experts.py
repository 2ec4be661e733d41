"""Mixtures of experts of every kind of routing: token for token transformers' continuation."""

import pytest

from ascend_integration.engine.grid import OPPOSITE_SETTINGS, EngineSettings, Graphs

from .equality_checks import EqualityChecks, grid

EAGER, FULL = OPPOSITE_SETTINGS
PIECEWISE = EngineSettings(Graphs.PIECEWISE, prefix_caching=False, step_tokens=256)


@pytest.mark.parametrize(
    "served",
    [
        *grid(["mixtral"], [EAGER, FULL]),
        # The others differ from it in routing and activation, which do not see how a step came about.
        *grid(["qwen3-moe", "glm4-moe", "gpt-oss"], [FULL]),
        *grid(["qwen2-moe"], [EAGER]),
        *grid(["llama4"], [PIECEWISE]),
    ],
    indirect=True,
)
class TestMixturesOfExperts(EqualityChecks):
    pass
