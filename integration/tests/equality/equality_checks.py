"""The checks every served tiny model must pass; the test modules choose families and settings."""

import random
from collections.abc import Iterable, Sequence

import pytest
from vllm import SamplingParams

from ascend_integration.engine.grid import NEW_TOKENS, SHARED_PREFIX, EngineSettings, Graphs
from ascend_integration.engine.in_process import BLOCK_SIZE, generate, greedy_tokens
from ascend_sim import instruments

from .served import Served

GRAPHS_IN_WORDS = {Graphs.EAGER: "eager", Graphs.FULL: "full graphs", Graphs.PIECEWISE: "piecewise graphs"}


def grid(families: Iterable[str], settings: Sequence[EngineSettings]) -> list:
    """Parameters of the fixture `served` with readable ids: `llama-graphs-step16`."""
    return [
        pytest.param(
            (family, point),
            id=f"{family}-{point}",
            marks=pytest.mark.supports(family, f"text, {GRAPHS_IN_WORDS[point.graphs]}", "transformers, greedy tokens"),
        )
        for family in families
        for point in settings
    ]


class EqualityChecks:
    """Greedy tokens equal transformers', however the requests are put together."""

    def test_batched(self, served: Served):
        assert greedy_tokens(served.llm, served.prompts, NEW_TOKENS) == served.expected

    @pytest.mark.parametrize("seed", [1, 2])
    def test_in_any_order(self, served: Served, seed: int):
        order = random.Random(seed).sample(range(len(served.prompts)), 5)
        tokens = greedy_tokens(served.llm, [served.prompts[index] for index in order], NEW_TOKENS)
        assert tokens == [served.expected[index] for index in order]

    def test_alone(self, served: Served):
        tokens = [greedy_tokens(served.llm, [prompt], NEW_TOKENS)[0] for prompt in served.prompts]
        assert tokens == served.expected

    def test_steps_replay_graphs_as_configured(self, served: Served):
        # Three prompt tokens in one step, then seven steps of one token. A full graph holds a decode step; the pieces
        # of three layers are what lies before, between and after their attention, in every step.
        replays = {Graphs.EAGER: 0, Graphs.FULL: 7, Graphs.PIECEWISE: 8 * 4}
        with instruments.counting() as counts:
            greedy_tokens(served.llm, [served.prompts[1]], 8)
        assert counts["replays"] == replays[served.settings.graphs]

    def test_prefix_cache_is_used_as_configured(self, served: Served):
        served.llm.reset_prefix_cache()
        shared_blocks = SHARED_PREFIX // BLOCK_SIZE
        parameters = SamplingParams(temperature=0, max_tokens=1, detokenize=False)
        cached = [generate(served.llm, [prompt], parameters)[0].num_cached_tokens for prompt in served.prompts[-2:]]
        assert cached == [0, shared_blocks * BLOCK_SIZE if served.settings.prefix_caching else 0]
