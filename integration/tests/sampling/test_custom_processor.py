"""A user's own logits processor: applied to the requests that ask for it, and its checks heard."""

import numpy as np
import pytest
from vllm import SamplingParams

from ascend_integration.checkpoints.tiny import VOCAB_SIZE
from ascend_integration.engine.in_process import generate

from .custom_processor import REQUEST_KEY
from .engines import on_engines
from .laws import forbid
from .prompts import PROMPTS
from .steps import check_greedy

pytestmark = [
    on_engines("processed-eager-sync"),
    pytest.mark.supports("every text model", "custom logits processors", "vLLM's documentation"),
]


def parameters(**rules):
    return SamplingParams(temperature=0, max_tokens=8, ignore_eos=True, logprobs=-1, **rules)


def multiples(divisor):
    return lambda logits, outputs: forbid(logits, np.arange(VOCAB_SIZE) % divisor != 0)


def test_only_the_requests_that_ask_for_it(served):
    check_greedy(
        served,
        [
            (PROMPTS[0], parameters(extra_args={REQUEST_KEY: 7}), multiples(7)),
            (PROMPTS[1], parameters(), multiples(1)),
            (PROMPTS[2], parameters(extra_args={REQUEST_KEY: 100}), multiples(100)),
        ],
    )


def test_refused_parameters(served):
    with pytest.raises(ValueError, match="must be a positive integer, got 0"):
        generate(served.llm, PROMPTS[:1], parameters(extra_args={REQUEST_KEY: 0}))
