"""Reading and comparing the log-probabilities of an engine's output."""

import numpy as np
from ascend_integration.checkpoints.tiny import VOCAB_SIZE
from numpy.typing import NDArray
from vllm import RequestOutput

from .laws import Logits

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
