"""Piecewise graphs, which also hold prefills and mixed steps: token for token transformers' continuation."""

import pytest

from ascend_integration.engine.grid import EngineSettings, Graphs

from .equality_checks import EqualityChecks, grid

SETTINGS = [EngineSettings(Graphs.PIECEWISE, prefix_caching=True, step_tokens=16)]


@pytest.mark.parametrize("served", grid(["llama", "gemma3"], SETTINGS), indirect=True)
class TestPiecewiseGraphs(EqualityChecks):
    pass
