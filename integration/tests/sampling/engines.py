"""The engines that the sampling tests share, by name; tests that use one run together, so that it starts once."""

from dataclasses import dataclass
from typing import Any

import pytest
from vllm import LLM

from ascend_integration.engine.grid import GRAPH_SIZES
from ascend_integration.oracle import Reference

from .custom_processor import OnlyMultiples

_GRAPHS: dict[str, Any] = {
    "enforce_eager": False,
    "compilation_config": {"cudagraph_mode": "FULL_DECODE_ONLY", "cudagraph_capture_sizes": GRAPH_SIZES},
}
# With 16 tokens a step, most batches mix decodes with prefills, and long prompts come in chunks.
_SMALL_STEPS: dict[str, Any] = {"max_num_batched_tokens": 16, "enable_prefix_caching": True}
# Log-probabilities of what a token is drawn from, for the whole vocabulary, instead of the model's own.
_PROCESSED: dict[str, Any] = {
    "logprobs_mode": "processed_logprobs",
    "max_logprobs": -1,
    "max_num_seqs": 64,
    "block_size": 128,
}

ENGINES: dict[str, dict[str, Any]] = {
    "graphs-async": {**_GRAPHS, **_SMALL_STEPS, "async_scheduling": True},
    "eager-async": {**_SMALL_STEPS, "enforce_eager": True, "async_scheduling": True},
    "processed-graphs-async": {**_GRAPHS, **_PROCESSED, "async_scheduling": True},
    "processed-eager-sync": {
        **_PROCESSED,
        "enforce_eager": True,
        "async_scheduling": False,
        "logits_processors": [OnlyMultiples],
    },
}


@dataclass(frozen=True)
class Served:
    """An engine and the oracle of its checkpoint."""

    llm: LLM
    oracle: Reference


def on_engines(*names: str) -> pytest.MarkDecorator:
    """Run a module's tests on each of these engines."""
    return pytest.mark.parametrize("served", names, indirect=True)
