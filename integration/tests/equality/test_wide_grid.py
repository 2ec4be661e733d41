"""Every setting for every family, those of the fast grid included."""

import pytest

from ascend_integration.checkpoints.tiny import TINY_MODELS
from ascend_integration.engine.grid import ALL_SETTINGS

from .equality_checks import EqualityChecks, grid


@pytest.mark.slow(reason="72 engines; the fast grid shows every value of every setting for each family")
@pytest.mark.parametrize("served", grid(TINY_MODELS, ALL_SETTINGS), indirect=True)
class TestWideGrid(EqualityChecks):
    pass
