"""Prompts and engines of the model families."""

import random

import pytest

from ascend_integration.checkpoints.pooling import VOCAB_SIZE
from ascend_integration.engine.in_process import BLOCK_SIZE

PROMPT_LENGTHS = (1, 2, 17, 100, 128, 129, 300, 310)
SHARED_PREFIX = 2 * BLOCK_SIZE


@pytest.fixture(scope="session")
def prompts() -> list[list[int]]:
    """Prompts of mixed length without special tokens; the last two share two blocks."""
    draw = random.Random(0)
    made = [[draw.randrange(5, VOCAB_SIZE) for _ in range(length)] for length in PROMPT_LENGTHS]
    made[-1][:SHARED_PREFIX] = made[-2][:SHARED_PREFIX]
    return made
