"""Log-probabilities of outputs and prompts: the model's own, before temperature, limits and penalties."""

import numpy as np
import pytest
from vllm import SamplingParams
from vllm.exceptions import VLLMValidationError

from ascend_integration.checkpoints.tiny import VOCAB_SIZE
from ascend_integration.engine.in_process import generate

from .engines import on_engines
from .laws import log_softmax
from .prompts import HOT, LONG_PROMPTS, PROMPTS
from .steps import TOLERANCE

pytestmark = [
    on_engines("graphs-async", "eager-async"),
    pytest.mark.supports("every text model", "log-probabilities", "transformers"),
]

ALTERED = {"temperature": HOT, "top_k": 30, "seed": 1, "repetition_penalty": 1.3, "logit_bias": {7: 3.0}}


def rows(oracle, tokens):
    """`[len(tokens), vocabulary]` log-probabilities; row i is of the token after `tokens[i]`."""
    return np.stack([log_softmax(row) for row in oracle.logits(tokens).double().numpy()])


def check_entry(entry, expected, token, most_likely):
    """`entry` holds `token` and the most likely ones, with their log-probabilities, ranks and text."""
    order = np.argsort(-expected, kind="stable")
    assert set(entry) == {token, *order[:most_likely].tolist()}
    for candidate, logprob in entry.items():
        assert logprob.logprob == pytest.approx(expected[candidate], abs=TOLERANCE)
        assert logprob.rank == int(np.flatnonzero(order == candidate)[0]) + 1


@pytest.mark.parametrize("changes", [{"temperature": 0}, ALTERED], ids=["greedy", "random-with-penalties"])
def test_most_likely_tokens_of_each_step(served, changes):
    counts = [0, 1, 5, 20]
    parameters = [SamplingParams(max_tokens=6, ignore_eos=True, logprobs=count, **changes) for count in counts]
    for prompt, count, output in zip(PROMPTS, counts, generate(served.llm, PROMPTS[:4], parameters), strict=False):
        tokens = list(output.outputs[0].token_ids)
        expected = rows(served.oracle, prompt + tokens)[len(prompt) - 1 :]
        steps = output.outputs[0].logprobs
        assert len(steps) == 6
        for token, entry, law in zip(tokens, steps, expected, strict=False):
            check_entry(entry, law, token, count)
        chosen = sum(law[token] for token, law in zip(tokens, expected, strict=False))
        assert output.outputs[0].cumulative_logprob == pytest.approx(chosen, abs=6 * TOLERANCE)


def test_requests_without_logprobs_beside_some_with(served):
    parameters = [
        SamplingParams(temperature=0, max_tokens=6, ignore_eos=True),
        SamplingParams(temperature=0, max_tokens=6, ignore_eos=True, logprobs=2),
    ]
    without, some = generate(served.llm, [PROMPTS[0]] * 2, parameters)
    assert without.outputs[0].logprobs is None
    assert without.outputs[0].token_ids == some.outputs[0].token_ids == served.oracle.greedy(PROMPTS[0], 6).tokens


@pytest.mark.parametrize("prompt", [PROMPTS[1], *LONG_PROMPTS], ids=lambda prompt: f"{len(prompt)}-tokens")
def test_prompt_tokens(served, prompt):
    """Also of a prompt that comes in chunks, and of one whose start is in the prefix cache."""
    generate(served.llm, [prompt], SamplingParams(max_tokens=1))
    parameters = SamplingParams(temperature=0, max_tokens=1, prompt_logprobs=3)
    (output,) = generate(served.llm, [prompt], parameters)
    first, *entries = output.prompt_logprobs
    assert first is None
    assert len(entries) == len(prompt) - 1
    for token, entry, law in zip(prompt[1:], entries, rows(served.oracle, prompt), strict=False):
        check_entry(entry, law, token, 3)


def test_given_tokens(served):
    wanted = [3, 500, 42]
    parameters = SamplingParams(temperature=0, max_tokens=3, ignore_eos=True, logprob_token_ids=wanted)
    (output,) = generate(served.llm, [PROMPTS[2]], parameters)
    tokens = list(output.outputs[0].token_ids)
    assert tokens == served.oracle.greedy(PROMPTS[2], 3).tokens
    expected = rows(served.oracle, PROMPTS[2] + tokens)[len(PROMPTS[2]) - 1 :]
    for token, entry, law in zip(tokens, output.outputs[0].logprobs, expected, strict=False):
        assert set(entry) == {token, *wanted}
        for candidate, logprob in entry.items():
            assert logprob.logprob == pytest.approx(law[candidate], abs=TOLERANCE)


def test_more_logprobs_than_allowed_are_refused(served):
    with pytest.raises(VLLMValidationError, match="greater than max allowed: 20"):
        generate(served.llm, [PROMPTS[0]], SamplingParams(logprobs=21))
    with pytest.raises(VLLMValidationError, match="out-of-vocab"):
        generate(served.llm, [PROMPTS[0]], SamplingParams(logprob_token_ids=[VOCAB_SIZE]))
