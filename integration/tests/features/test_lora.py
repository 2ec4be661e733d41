"""Requests of one batch with different adapters, or none, get the tokens of models that have the adapter merged."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from vllm import LLM, SamplingParams
from vllm.lora.request import LoRARequest

from ascend_integration.checkpoints.adapters import save_adapter
from ascend_integration.checkpoints.tiny import TINY_MODELS
from ascend_integration.engine.grid import GRAPH_SIZES
from ascend_integration.engine.in_process import in_process_engine
from ascend_integration.oracle import Reference
from ascend_sim import instruments

NEW_TOKENS = 16
# The one key-value head has 16 outputs, fewer than the larger ranks.
FAMILY = "llama-mqa"
RANKS = (4, 32, 24)
PROMPTS = [[7 * index + offset for index in range(1, 2 + 9 * offset)] for offset in range(5)]
# Which adapter each of five requests has; 0 is none. Three adapters do not fit into two slots at once.
BATCHES = [[1, 0, 2, 2, 1], [0, 3, 3, 1, 0], [0, 0, 0, 0, 0], [2, 2, 2, 2, 3]]


@dataclass(frozen=True)
class Adapted:
    """An engine, its adapters, and transformers' continuation of every prompt with every adapter, 0 for none."""

    llm: LLM
    adapters: list[LoRARequest | None]
    expected: list[list[list[int]]]


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory):
    parent = tmp_path_factory.mktemp("adapters")
    base = TINY_MODELS[FAMILY].save(parent / "base")
    merged, adapters = [base], [None]
    for number, rank in enumerate(RANKS, start=1):
        merged.append(parent / f"merged{number}")
        folder = save_adapter(base, parent / f"adapter{number}", merged[-1], rank, alpha=2.0 * rank, seed=10 * number)
        adapters.append(LoRARequest(f"adapter{number}", number, str(folder)))
    expected = []
    for folder in merged:
        reference = Reference.load(folder)
        continuations = [reference.greedy(prompt, NEW_TOKENS) for prompt in PROMPTS]
        assert min(continuation.gap for continuation in continuations) > 1e-3
        expected.append([continuation.tokens for continuation in continuations])
    return base, adapters, expected


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(
            settings, id=name, marks=pytest.mark.supports(FAMILY, f"adapters (LoRA), {name}", "merged weights")
        )
        for name, settings in [
            ("eager", {"enforce_eager": True}),
            (
                "full graphs",
                {"compilation_config": {"cudagraph_mode": "FULL_DECODE_ONLY", "cudagraph_capture_sizes": GRAPH_SIZES}},
            ),
        ]
    ],
)
def adapted(request: pytest.FixtureRequest, checkpoints) -> Iterator[Adapted]:
    base, adapters, expected = checkpoints
    with in_process_engine(
        str(base),
        skip_tokenizer_init=True,
        dtype="float32",
        additional_config={"allow_float32": True},
        enable_lora=True,
        max_loras=2,
        max_cpu_loras=3,
        max_lora_rank=32,
        **request.param,
    ) as llm:
        yield Adapted(llm, adapters, expected)


def tokens(adapted: Adapted, choice: list[int]) -> list[list[int]]:
    """Greedy continuations of the prompts, each with its adapter, submitted together."""
    outputs = adapted.llm.generate(
        [{"prompt_token_ids": prompt} for prompt in PROMPTS],
        SamplingParams(temperature=0, max_tokens=NEW_TOKENS, ignore_eos=True, detokenize=False),
        lora_request=[adapted.adapters[number] for number in choice],
        use_tqdm=False,
    )
    return [list(output.outputs[0].token_ids) for output in outputs]


def test_adapters_change_what_is_said(checkpoints):
    expected = checkpoints[2]
    assert all(len({tuple(tokens[row]) for tokens in expected}) == len(expected) for row in range(len(PROMPTS)))


@pytest.mark.parametrize("choice", BATCHES, ids=str)
def test_each_request_has_its_own(adapted: Adapted, choice: list[int]):
    assert tokens(adapted, choice) == [adapted.expected[number][row] for row, number in enumerate(choice)]


def test_decode_steps_replay_graphs_as_configured(adapted: Adapted):
    graphs = not adapted.llm.llm_engine.vllm_config.model_config.enforce_eager
    with instruments.counting() as counts:
        tokens(adapted, BATCHES[0])
    assert (counts["replays"] >= NEW_TOKENS - 1) == graphs


def test_an_adapter_of_a_larger_rank_than_configured_is_refused(adapted: Adapted, checkpoints, tmp_path):
    folder = save_adapter(checkpoints[0], tmp_path / "large", tmp_path / "merged", 64, alpha=64, seed=9)
    with pytest.raises(ValueError, match="LoRA rank 64 is greater than max_lora_rank 32"):
        adapted.llm.generate(
            {"prompt_token_ids": [1]}, SamplingParams(), lora_request=LoRARequest("large", 9, str(folder))
        )
