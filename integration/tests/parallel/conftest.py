"""Checkpoints, prompts and the oracle's tokens."""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ascend_integration.checkpoints.tiny import TINY_MODELS
from ascend_integration.oracle import Reference

# Prime, so that no number of ranks divides it: the last rank's share of the vocabulary is padded.
VOCAB_SIZE = 509
NEW_TOKENS = 24
PROMPT_LENGTHS = (1, 3, 16, 17, 40, 7, 64, 130)


@dataclass(frozen=True)
class Case:
    """A checkpoint with the greedy requests of one batch and the tokens that the oracle gives."""

    engine: dict[str, Any]
    requests: list[dict[str, Any]]
    expected: list[list[int]]


@pytest.fixture(scope="session")
def case(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Case]:
    """The case of a tiny model's family, with engine arguments but for the kind of parallelism."""

    @cache
    def of(family: str) -> Case:
        model = TINY_MODELS[family]
        model = replace(model, settings={**model.settings, "vocab_size": VOCAB_SIZE})
        folder = model.save(tmp_path_factory.mktemp("models") / family)
        draw = random.Random(0)
        prompts = [[draw.randrange(3, VOCAB_SIZE) for _ in range(length)] for length in PROMPT_LENGTHS]
        oracle = Reference.load(folder)
        parameters = {"temperature": 0, "max_tokens": NEW_TOKENS, "ignore_eos": True, "detokenize": False}
        return Case(
            engine_arguments(folder),
            [{"prompt": prompt, "parameters": parameters} for prompt in prompts],
            [oracle.greedy(prompt, NEW_TOKENS).tokens for prompt in prompts],
        )

    return of


def engine_arguments(folder: Path) -> dict[str, Any]:
    """float32, full graphs for up to eight requests, async scheduling, prefills in chunks that mix with decodes."""
    return {
        "model": str(folder),
        "skip_tokenizer_init": True,
        "dtype": "float32",
        "additional_config": {"allow_float32": True},
        "max_model_len": 256,
        "max_num_batched_tokens": 48,
        "max_num_seqs": 8,
        "block_size": 128,
        "kv_cache_memory_bytes": 64 << 20,
        "compilation_config": {"cudagraph_mode": "FULL_DECODE_ONLY", "cudagraph_capture_sizes": [1, 2, 4, 8]},
        "async_scheduling": True,
        "seed": 0,
    }
