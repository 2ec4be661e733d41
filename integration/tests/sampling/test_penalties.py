"""Repetition, frequency and presence penalties: the log-probabilities drawn from equal the formulas at every step."""

import pytest
from vllm import SamplingParams

from ascend_integration.engine.in_process import generate

from .engines import on_engines
from .laws import forbid, greedy, log_softmax, next_logits, penalties
from .prompts import HOT, PROMPTS
from .steps import assert_close, step_logprobs

pytestmark = [
    on_engines("processed-graphs-async", "processed-eager-sync"),
    pytest.mark.supports("every text model", "penalties", "published formulas"),
]

NEW_TOKENS = 12
PENALTIES = [
    {},
    {"repetition_penalty": 1.5},
    {"repetition_penalty": 0.6},
    {"frequency_penalty": 0.7},
    {"frequency_penalty": -0.4},
    {"presence_penalty": 1.3},
    {"presence_penalty": -1.1},
    {"repetition_penalty": 1.2, "frequency_penalty": 0.5, "presence_penalty": 0.8},
]


def penalised(logits, prompt, outputs, settings):
    return penalties(
        logits,
        prompt,
        outputs,
        settings.get("repetition_penalty", 1.0),
        settings.get("frequency_penalty", 0.0),
        settings.get("presence_penalty", 0.0),
    )


@pytest.mark.parametrize("few", [False, True], ids=["all-tokens", "eight-tokens"])
def test_greedy_with_penalties_in_one_batch(served, few):
    """With eight allowed tokens in twelve steps, some come twice and more."""
    parameters = []
    expected = []
    for prompt, settings in zip(PROMPTS, PENALTIES, strict=True):
        # Two of the eight are in the prompt, so that a repetition penalty touches them from the first step.
        allowed = sorted({*prompt[:2], 11, 45, 120, 300, 301, 511}) if few else None
        parameters.append(
            SamplingParams(
                temperature=0,
                max_tokens=NEW_TOKENS,
                ignore_eos=True,
                logprobs=-1,
                allowed_token_ids=allowed,
                **settings,
            )
        )

        def edit(logits, outputs, prompt=prompt, settings=settings, allowed=allowed):
            if allowed is not None:
                logits = forbid(logits, [token for token in range(logits.size) if token not in allowed])
            return penalised(logits, prompt, outputs, settings)

        expected.append(greedy(served.oracle, prompt, NEW_TOKENS, edit))
    if few:
        assert all(len(set(tokens)) < NEW_TOKENS for tokens, _ in expected)
    outputs = generate(served.llm, PROMPTS, parameters)
    for output, (tokens, steps) in zip(outputs, expected, strict=True):
        assert list(output.outputs[0].token_ids) == tokens
        for got, step in zip(step_logprobs(output), steps, strict=True):
            assert_close(got, step)


def test_random_draws_with_penalties(served):
    parameters = [
        SamplingParams(temperature=HOT, seed=i, max_tokens=6, ignore_eos=True, logprobs=-1, **settings)
        for i, settings in enumerate(PENALTIES)
    ]
    outputs = generate(served.llm, PROMPTS, parameters)
    for prompt, settings, output in zip(PROMPTS, PENALTIES, outputs, strict=True):
        drawn = list(output.outputs[0].token_ids)
        for step, got in enumerate(step_logprobs(output)):
            logits = next_logits(served.oracle, prompt + drawn[:step])
            assert_close(got, log_softmax(penalised(logits, prompt, drawn[:step], settings) / HOT))


def test_output_is_penalised_from_the_step_after_it(served):
    """Prompt [1], then 2, 2, …: with async scheduling the next step is prepared before this one's token is known."""
    settings = [{"repetition_penalty": 1.5}, {"frequency_penalty": 1.0}, {"presence_penalty": 1.0}, {}]
    parameters = [
        SamplingParams(temperature=0, max_tokens=5, ignore_eos=True, logprobs=-1, logit_bias={2: 60.0}, **setting)
        for setting in settings
    ]
    for setting, output in zip(settings, generate(served.llm, [[1]] * 4, parameters), strict=True):
        assert list(output.outputs[0].token_ids) == [2] * 5
        for step, got in enumerate(step_logprobs(output)):
            logits = next_logits(served.oracle, [1] + [2] * step)
            logits[2] += 60.0
            assert_close(got, log_softmax(penalised(logits, [1], [2] * step, setting)))
