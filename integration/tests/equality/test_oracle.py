"""The oracle itself: its tokens are those of transformers' generate, and none is a near tie that rounding decides."""

import pytest
import torch

from ascend_integration.checkpoints.tiny import TINY_MODELS
from ascend_integration.engine.grid import NEW_TOKENS
from ascend_integration.oracle import Reference


@pytest.mark.parametrize("family", TINY_MODELS)
def test_tokens_are_those_of_generate(family, tiny_folder, continuations, prompts):
    model = Reference.load(tiny_folder(family)).model
    for prompt, continuation in zip(prompts, continuations(family), strict=True):
        generated = model.generate(
            torch.tensor([prompt]),
            attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
            do_sample=False,
            max_new_tokens=NEW_TOKENS,
            min_new_tokens=NEW_TOKENS,
            eos_token_id=None,
            pad_token_id=0,
        )
        assert generated[0, len(prompt) :].tolist() == continuation.tokens


@pytest.mark.parametrize("family", TINY_MODELS)
def test_no_near_ties(family, continuations):
    # float32 logits of these models are some tens in size and agree to about 1e-4 between two orders of summation.
    assert min(continuation.gap for continuation in continuations(family)) > 1e-3


@pytest.mark.parametrize("family", TINY_MODELS)
def test_prompts_lead_to_varied_tokens(family, continuations):
    # A model that repeats one token would hide a wrong position or mask.
    assert all(len(set(continuation.tokens)) > 12 for continuation in continuations(family))
