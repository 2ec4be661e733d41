"""SmolLM2-135M-Instruct, converted from its package: token for token transformers' continuation of real text."""

import pytest
from transformers import AutoTokenizer

from ascend_integration.checkpoints import smollm2_checkpoint
from ascend_integration.engine.grid import NEW_TOKENS, EngineSettings, Graphs
from ascend_integration.engine.in_process import greedy_tokens, in_process_engine
from ascend_integration.oracle import Reference

# The prompts are such that transformers' own best two logits are never nearer than this: two orders of summation in
# float32 differ by some 1e-4 here and may not choose differently.
NEAR_TIE = 5e-3

QUESTIONS = [
    "Hi",
    "What is the capital of France?",
    "Name three primary colors.",
    "Why is the sky blue? Answer in one sentence.",
    "Write a short poem about winter, with four lines, in which each line ends with a colour.",
    "How many days are there in a week?",
    "Translate to French: the cat sits on the mat while the dog sleeps under the table in the kitchen.",
    "Summarise: bees collect nectar from flowers and turn it into honey, which they store in the hive. " * 4,
]


@pytest.fixture(scope="module")
def prompts() -> list[list[int]]:
    tokenizer = AutoTokenizer.from_pretrained(smollm2_checkpoint())
    return [
        tokenizer.apply_chat_template([{"role": "user", "content": question}], add_generation_prompt=True)["input_ids"]
        for question in QUESTIONS
    ]


@pytest.fixture(scope="module")
def expected(prompts) -> list[list[int]]:
    reference = Reference.load(smollm2_checkpoint())
    continuations = reference.greedy_batch(prompts, NEW_TOKENS, pad_token=2)
    assert min(continuation.gap for continuation in continuations) > NEAR_TIE
    return [continuation.tokens for continuation in continuations]


@pytest.mark.parametrize(
    "settings",
    [
        EngineSettings(graphs=Graphs.FULL, prefix_caching=True, step_tokens=256),
        EngineSettings(graphs=Graphs.EAGER, prefix_caching=False, step_tokens=64),
    ],
    ids=str,
)
@pytest.mark.supports("smollm2", "text, eager and full graphs", "transformers, greedy tokens")
def test_tokens_equal_transformers(settings, prompts, expected):
    with in_process_engine(
        str(smollm2_checkpoint()),
        dtype="float32",
        additional_config={"allow_float32": True},
        **settings.engine_arguments(),
    ) as llm:
        assert greedy_tokens(llm, prompts, NEW_TOKENS) == expected
