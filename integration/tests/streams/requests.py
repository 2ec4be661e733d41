"""Requests that together use most of the sampler, deterministic each."""

import random
from typing import Any

from vllm import SamplingParams

from ascend_integration.checkpoints.tiny import VOCAB_SIZE

NEW_TOKENS = 20


def _prompt(length: int) -> list[int]:
    draw = random.Random(length)
    return [draw.randrange(3, VOCAB_SIZE) for _ in range(length)]


_SAMPLING: tuple[dict[str, Any], ...] = (
    {"temperature": 0},
    {"temperature": 0, "repetition_penalty": 1.3, "presence_penalty": 0.5, "frequency_penalty": 0.4},
    {"temperature": 0.8, "seed": 1, "top_p": 0.9},
    {"temperature": 1.0, "seed": 2, "top_k": 20, "min_p": 0.01},
    {"temperature": 0, "logit_bias": {7: 4.0, 9: -4.0}, "min_tokens": 5},
    {"temperature": 0.7, "seed": 3, "logprobs": 2, "allowed_token_ids": list(range(3, 200))},
)
# Different lengths of prompts and answers: requests come and go while others decode.
REQUESTS = [
    (_prompt(length), SamplingParams(**sampling, max_tokens=NEW_TOKENS - index, ignore_eos=True, detokenize=False))
    for index, (length, sampling) in enumerate(zip((3, 40, 1, 130, 17, 9), _SAMPLING, strict=True))
]
