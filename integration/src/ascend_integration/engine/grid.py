"""The settings under which every tiny model must give transformers' tokens."""

from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from typing import Any

NEW_TOKENS = 48
# A KV block is 128 tokens, the tiny models' window 24: lengths below, at and above both, and prompts of several blocks,
# of which the last two begin alike.
PROMPT_LENGTHS = (1, 3, 17, 24, 100, 128, 270, 300)
SHARED_PREFIX = 260
# Batch sizes of up to eight run in a graph; a batch of three is padded to four.
GRAPH_SIZES = [1, 2, 4, 8]


class Graphs(StrEnum):
    """What runs as a device graph; the values are vLLM's `cudagraph_mode`."""

    EAGER = "NONE"
    FULL = "FULL_DECODE_ONLY"
    PIECEWISE = "PIECEWISE"


@dataclass(frozen=True)
class EngineSettings:
    """One point of the grid: what runs as a graph, prefix caching, and the token budget of a step."""

    graphs: Graphs
    prefix_caching: bool
    step_tokens: int

    def __str__(self) -> str:
        names = [self.graphs.name.lower(), f"step{self.step_tokens}"]
        return "-".join(names + (["prefixcache"] if self.prefix_caching else []))

    def engine_arguments(self) -> dict[str, Any]:
        """Arguments of `vllm.LLM` for this point."""
        arguments: dict[str, Any] = {
            "enable_prefix_caching": self.prefix_caching,
            "max_num_batched_tokens": self.step_tokens,
            "enforce_eager": self.graphs is Graphs.EAGER,
        }
        if self.graphs is not Graphs.EAGER:
            arguments["compilation_config"] = {
                "cudagraph_mode": self.graphs.value,
                "cudagraph_capture_sizes": GRAPH_SIZES,
            }
        return arguments


# 16 is less than most prompts, so prefills come in many chunks and mix with decodes; 256 splits the longest ones.
ALL_SETTINGS = [EngineSettings(*point) for point in product((Graphs.EAGER, Graphs.FULL), (False, True), (16, 256))]

# Opposite in everything, so that two engines show every value.
OPPOSITE_SETTINGS = [
    EngineSettings(graphs=Graphs.EAGER, prefix_caching=False, step_tokens=256),
    EngineSettings(graphs=Graphs.FULL, prefix_caching=True, step_tokens=16),
]

# Every pair of values of two settings occurs: a fault of one setting or of two together shows. The rest is `slow`.
PAIRWISE_SETTINGS = [
    EngineSettings(graphs=Graphs.EAGER, prefix_caching=False, step_tokens=256),
    EngineSettings(graphs=Graphs.EAGER, prefix_caching=True, step_tokens=16),
    EngineSettings(graphs=Graphs.FULL, prefix_caching=False, step_tokens=16),
    EngineSettings(graphs=Graphs.FULL, prefix_caching=True, step_tokens=256),
]
