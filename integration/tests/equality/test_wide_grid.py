"""The settings that the pairwise grid leaves out, for every family."""

import pytest

from ascend_integration.checkpoints.tiny import TINY_MODELS
from ascend_integration.engine.grid import ALL_SETTINGS, PAIRWISE_SETTINGS

from .equality_checks import EqualityChecks, grid

REMAINING = [settings for settings in ALL_SETTINGS if settings not in PAIRWISE_SETTINGS]


@pytest.mark.slow(reason="36 engines; every pair of settings is covered by the fast grid")
@pytest.mark.parametrize("served", grid(TINY_MODELS, REMAINING), indirect=True)
class TestWideGrid(EqualityChecks):
    pass
