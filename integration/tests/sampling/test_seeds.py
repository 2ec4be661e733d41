"""Seeds: the same seed gives the same tokens, whatever else is in the batch; draws without a seed differ."""

import pytest
from vllm import SamplingParams

from ascend_integration.engine.in_process import generate

from .engines import on_engines
from .prompts import HOT, LONG_PROMPTS, PROMPTS

pytestmark = [
    on_engines("graphs-async", "eager-async"),
    pytest.mark.supports("every text model", "seeds", "vLLM's documentation"),
]


def sampled(llm, prompts, parameters):
    return [list(output.outputs[0].token_ids) for output in generate(llm, prompts, parameters)]


def seeded(seed, **changes):
    return SamplingParams(**{"temperature": HOT, "seed": seed, "max_tokens": 12, "ignore_eos": True, **changes})


@pytest.fixture(scope="package")
def alone(served):
    """Each prompt with its own seed, one request at a time."""
    return [sampled(served.llm, [prompt], seeded(seed))[0] for seed, prompt in enumerate(PROMPTS)]


def test_same_seed_gives_same_tokens(served, alone):
    assert sampled(served.llm, PROMPTS[:1], seeded(0)) == alone[:1]


@pytest.mark.parametrize("order", [list(range(8)), list(reversed(range(8))), [3, 6, 0, 5, 7, 1, 4, 2]], ids=str)
def test_batch_and_order_do_not_matter(served, alone, order):
    tokens = sampled(served.llm, [PROMPTS[i] for i in order], [seeded(i) for i in order])
    assert tokens == [alone[i] for i in order]


def test_prefill_in_chunks_draws_the_same(served):
    """The draw of an unfinished chunk is discarded and must not advance the request's generator."""
    chunked = sampled(served.llm, LONG_PROMPTS, [seeded(seed) for seed in range(3)])
    served.llm.reset_prefix_cache()
    alone = [sampled(served.llm, [prompt], seeded(seed))[0] for seed, prompt in enumerate(LONG_PROMPTS)]
    mostly_cached = sampled(served.llm, LONG_PROMPTS, [seeded(seed) for seed in range(3)])
    assert chunked == alone == mostly_cached


def test_batch_mates_with_other_parameters_do_not_matter(served, alone):
    mates = [
        SamplingParams(temperature=0, max_tokens=3, ignore_eos=True),
        SamplingParams(temperature=HOT, max_tokens=20, ignore_eos=True),
        seeded(9, top_k=3, max_tokens=5),
        seeded(0, top_p=0.5, max_tokens=9),
        SamplingParams(temperature=2 * HOT, min_p=0.1, max_tokens=2, ignore_eos=True),
    ]
    tokens = sampled(served.llm, [PROMPTS[0], *PROMPTS[1:6]], [seeded(0), *mates])
    assert tokens[0] == alone[0]


def test_different_seeds_give_different_tokens(served):
    drawn = sampled(served.llm, [PROMPTS[0]] * 8, [seeded(seed) for seed in range(8)])
    assert len({tuple(tokens) for tokens in drawn}) == 8


def test_draws_without_seed_differ(served):
    parameters = SamplingParams(temperature=HOT, max_tokens=12, ignore_eos=True)
    drawn = [*sampled(served.llm, [PROMPTS[0]] * 8, parameters), *sampled(served.llm, [PROMPTS[0]] * 8, parameters)]
    assert len({tuple(tokens) for tokens in drawn}) == 16


def test_several_outputs_are_drawn_from_consecutive_seeds(served):
    (request,) = generate(served.llm, [PROMPTS[1]], seeded(40, n=3))
    assert [output.index for output in request.outputs] == [0, 1, 2]
    drawn = [list(output.token_ids) for output in request.outputs]
    assert drawn == sampled(served.llm, [PROMPTS[1]] * 3, [seeded(40), seeded(41), seeded(42)])
    assert len({tuple(tokens) for tokens in drawn}) == 3


def test_greedy_among_random_requests_is_greedy_alone(served):
    greedy = SamplingParams(temperature=0, max_tokens=16, ignore_eos=True)
    expected = [served.oracle.greedy(PROMPTS[i], 16).tokens for i in (0, 3)]
    random_mates = [SamplingParams(temperature=HOT, top_k=50, max_tokens=10, ignore_eos=True), seeded(5), seeded(6)]
    order = [PROMPTS[1], PROMPTS[0], PROMPTS[2], PROMPTS[3], PROMPTS[4]]
    tokens = sampled(served.llm, order, [random_mates[0], greedy, random_mates[1], greedy, random_mates[2]])
    assert [tokens[1], tokens[3]] == expected
