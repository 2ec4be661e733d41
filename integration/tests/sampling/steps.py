"""Reading and comparing the log-probabilities of an engine's output."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from vllm import RequestOutput, SamplingParams

from ascend_integration.checkpoints.tiny import VOCAB_SIZE
from ascend_integration.engine.in_process import generate

from .engines import Served
from .laws import Edit, Logits, greedy

# float32 logits of size ten, summed in another order than the oracle's; a wrong rule is off by tenths and more.
TOLERANCE = 1e-3


def step_logprobs(output: RequestOutput) -> NDArray[np.float64]:
    """`[steps, vocabulary]` log-probabilities of a request made with `logprobs=-1`."""
    steps = output.outputs[0].logprobs
    assert steps is not None
    vectors = np.full((len(steps), VOCAB_SIZE), np.nan)
    for vector, step in zip(vectors, steps, strict=True):
        for token, logprob in step.items():
            vector[token] = logprob.logprob
    assert not np.isnan(vectors).any(), "a token of the vocabulary has no log-probability"
    return vectors


def assert_close(got: Logits, expected: Logits) -> None:
    """The same tokens are possible, and their log-probabilities agree."""
    np.testing.assert_array_equal(np.isneginf(got), np.isneginf(expected))
    possible = ~np.isneginf(expected)
    np.testing.assert_allclose(got[possible], expected[possible], rtol=0, atol=TOLERANCE)


def check_greedy(served: Served, requests: Sequence[tuple[list[int], SamplingParams, Edit]]) -> None:
    """Serve `(prompt, parameters, edit)` in one batch and compare each with the oracle's edited continuation."""
    outputs = generate(served.llm, [prompt for prompt, _, _ in requests], [parameters for _, parameters, _ in requests])
    for (prompt, parameters, edit), output in zip(requests, outputs, strict=True):
        assert parameters.max_tokens is not None
        tokens, steps = greedy(served.oracle, prompt, parameters.max_tokens, edit)
        assert list(output.outputs[0].token_ids) == tokens
        for got, step in zip(step_logprobs(output), steps, strict=True):
            assert_close(got, step)
