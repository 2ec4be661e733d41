"""Prompts of the sampling tests."""

import random

from ascend_integration.checkpoints.tiny import VOCAB_SIZE

_draw = random.Random(1)
PROMPTS = [[_draw.randrange(3, VOCAB_SIZE) for _ in range(length)] for length in (2, 5, 9, 14, 16, 3, 7, 12)]
# On engines with 16 tokens a step, these take several; the last has more than a block of 128, which can be cached.
LONG_PROMPTS = [[_draw.randrange(3, VOCAB_SIZE) for _ in range(length)] for length in (30, 45, 140)]

# The tiny model's logits have a spread of 3.7: at this temperature a hundred tokens are likely.
HOT = 2.0
