"""Rules on single tokens: logit bias, allowed tokens, bad words, minimum length and a user's own logits processor."""

import numpy as np
import pytest
from vllm import SamplingParams
from vllm.exceptions import VLLMValidationError

from ascend_integration.checkpoints.tiny import VOCAB_SIZE
from ascend_integration.engine.in_process import generate

from .engines import on_engines
from .laws import forbid
from .prompts import HOT, PROMPTS
from .steps import check_greedy
from .words import WORDS, text_of

pytestmark = [
    on_engines("processed-graphs-async", "processed-eager-sync"),
    pytest.mark.supports("every text model", "token rules", "vLLM's documentation"),
]

NEW_TOKENS = 8
END = 2


def parameters(**rules):
    return SamplingParams(temperature=0, max_tokens=NEW_TOKENS, ignore_eos=True, logprobs=-1, **rules)


def unchanged(logits, outputs):
    return logits


def test_logit_bias(served):
    def biased(bias):
        def edit(logits, outputs):
            changed = logits.copy()
            for token, value in bias.items():
                changed[token] += value
            return changed

        return edit

    biases = [{5: 7.0, 100: 6.5, 511: 6.0, 0: 5.5}, {VOCAB_SIZE - 1: -100.0, 9: 6.0}]
    check_greedy(
        served,
        [
            (PROMPTS[1], parameters(logit_bias=biases[0]), biased(biases[0])),
            (PROMPTS[2], parameters(), unchanged),
            (PROMPTS[3], parameters(logit_bias=biases[1]), biased(biases[1])),
        ],
    )


def test_allowed_tokens(served):
    allowed = [0, 31, 32, 33, 95, 200, 256, 511]

    def edit(logits, outputs):
        return forbid(logits, np.isin(np.arange(VOCAB_SIZE), allowed, invert=True))

    check_greedy(
        served,
        [(PROMPTS[4], parameters(), unchanged), (PROMPTS[5], parameters(allowed_token_ids=allowed), edit)],
    )


def test_bad_words(served):
    """The last token of a bad word is forbidden when the tokens before it have just been produced."""
    plain = [served.oracle.greedy(prompt, NEW_TOKENS).tokens for prompt in PROMPTS[:4]]
    bad = [
        [plain[0][0:1], plain[0][2:3]],  # words of one token
        [plain[1][1:3]],  # of two
        [plain[2][2:5], plain[2][0:2]],  # of three; the second alters the text before the first can be
        [[*plain[3][1:3], plain[3][0]]],  # never reached
    ]

    def without(words):
        def edit(logits, outputs):
            last = [word[-1] for word in words if list(outputs)[len(outputs) - len(word) + 1 :] == word[:-1]]
            return forbid(logits, last)

        return edit

    check_greedy(
        served,
        [
            (prompt, parameters(bad_words=[text_of(word) for word in words]), without(words))
            for prompt, words in zip(PROMPTS[:4], bad, strict=True)
        ],
    )


@pytest.mark.parametrize("stop", [END, 77], ids=["end-of-sequence", "stop-token"])
def test_minimum_length_holds_back_the_stop(served, stop):
    """A bias makes the stop token the best at every step: it comes at the first that may have it."""
    parameters = [
        SamplingParams(temperature=0, max_tokens=20, min_tokens=fewest, stop_token_ids=[77], logit_bias={stop: 1e4})
        for fewest in (0, 1, 4, 9)
    ]
    outputs = generate(served.llm, PROMPTS[:4], parameters)
    for fewest, output in zip((0, 1, 4, 9), outputs, strict=True):
        tokens = list(output.outputs[0].token_ids)
        assert tokens.index(stop) == len(tokens) - 1 == fewest
        assert output.outputs[0].finish_reason == "stop"


def test_rules_together_with_random_draws(served):
    allowed = list(range(40, 60))
    parameters = [
        SamplingParams(
            temperature=HOT,
            seed=seed,
            max_tokens=20,
            ignore_eos=True,
            allowed_token_ids=allowed,
            bad_words=[WORDS[45], WORDS[46]],
            logit_bias={47: -1e4},
        )
        for seed in range(6)
    ]
    outputs = generate(served.llm, PROMPTS[:6], parameters)
    drawn = {token for output in outputs for token in output.outputs[0].token_ids}
    assert drawn <= set(allowed) - {45, 46, 47}
    assert len(drawn) > 10


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"logit_bias": {VOCAB_SIZE: 1.0}}, "out-of-vocab"),
        ({"allowed_token_ids": [VOCAB_SIZE]}, "out-of-vocab"),
        ({"allowed_token_ids": []}, "empty"),
    ],
    ids=["bias", "allowed", "none-allowed"],
)
def test_tokens_outside_the_vocabulary_are_refused(served, rules, message):
    with pytest.raises(VLLMValidationError, match=message):
        generate(served.llm, PROMPTS[:1], SamplingParams(**rules))
    assert len(generate(served.llm, PROMPTS[:1], parameters())[0].outputs[0].token_ids) == NEW_TOKENS
