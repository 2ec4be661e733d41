"""The short path of plain decode steps against vLLM's general path, on one engine that runs both."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
import torch

NEW_TOKENS = 20


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A two-layer random Llama in this process: up to 5 requests, 16 tokens a step.

    Graphs of 1, 2 and 4 requests are captured; the size 8 is more than a batch has requests.
    """
    patch = pytest.MonkeyPatch()
    patch.setenv("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
    from transformers import LlamaConfig, LlamaForCausalLM
    from vllm import LLM
    from vllm.distributed import cleanup_dist_env_and_memory

    folder = tmp_path_factory.mktemp("model")
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=256, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=512, initializer_range=0.3, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    LlamaForCausalLM(config).bfloat16().save_pretrained(folder)
    llm = LLM(
        str(folder), skip_tokenizer_init=True, max_model_len=320, max_num_batched_tokens=16, max_num_seqs=5,
        kv_cache_memory_bytes=16 << 20, block_size=128, compilation_config={"cudagraph_capture_sizes": [1, 2, 4, 8]},
    )  # fmt: skip
    yield llm
    core = llm.llm_engine
    core.engine_core.shutdown()
    del core, llm
    cleanup_dist_env_and_memory()
    patch.undo()


def runner_of(engine: Any) -> Any:
    executor = engine.llm_engine.engine_core.engine_core.model_executor
    return executor.driver_worker.worker.model_runner


@pytest.fixture(params=["short", "general"])
def path(request: pytest.FixtureRequest, engine: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """Choose a path and check afterwards that it was taken."""
    runner = runner_of(engine)
    step = runner.decode_step
    assert step is not None
    prepared = []
    prepare = step.prepare
    monkeypatch.setattr(step, "prepare", lambda count, *rows: (prepared.append(count), prepare(count, *rows)))
    if request.param == "general":
        monkeypatch.setattr(runner, "decode_step", None)
    request.node.prepared = prepared
    yield request.param
    assert bool(prepared) == (request.param == "short")


_RESULTS: dict[str, dict[str, Any]] = {}


def generate(engine: Any, lengths: list[int], **parameters: Any) -> list[tuple[Any, ...]]:
    from vllm import SamplingParams

    draw = random.Random(7)
    prompts = [{"prompt_token_ids": [draw.randrange(3, 250) for _ in range(length)]} for length in lengths]
    # Different lengths, so that requests leave the batch one by one and the rest moves up.
    wishes = [
        SamplingParams(max_tokens=NEW_TOKENS - 3 * index, ignore_eos=True, detokenize=False, **parameters)
        for index in range(len(prompts))
    ]
    outputs = engine.generate(prompts, wishes, use_tqdm=False)
    return [
        (
            tuple(output.outputs[0].token_ids),
            None
            if output.outputs[0].logprobs is None
            else [
                {token: round(entry.logprob, 5) for token, entry in step.items()} for step in output.outputs[0].logprobs
            ],
        )
        for output in outputs
    ]


CASES: dict[str, tuple[list[int], dict[str, Any]]] = {
    "greedy": ([1, 5, 17, 120, 126], {"temperature": 0}),
    "one": ([3], {"temperature": 0}),
    "more-than-any-graph": ([2, 3, 2, 3, 2], {"temperature": 0}),
    "padded": ([3, 40, 9], {"temperature": 0}),
    "seeded": ([4, 30, 2], {"temperature": 0.9, "top_k": 20, "top_p": 0.9, "seed": 11}),
    "penalties": ([4, 30, 2, 8], {"temperature": 0, "repetition_penalty": 1.3, "frequency_penalty": 0.4}),
    "logprobs": ([6, 2], {"temperature": 0, "logprobs": 2}),
    "prompt-logprobs": ([6, 2], {"temperature": 0, "prompt_logprobs": 1}),
    "bias": ([6, 2], {"temperature": 0, "logit_bias": {17: 3.0}, "min_tokens": 4}),
}


@pytest.mark.parametrize("case", CASES)
def test_both_paths_give_the_same(engine: Any, path: str, case: str) -> None:
    lengths, parameters = CASES[case]
    result = generate(engine, lengths, **parameters)
    assert [len(tokens) for tokens, _ in result] == [NEW_TOKENS - 3 * index for index in range(len(lengths))]
    known = _RESULTS.setdefault(case, {})
    known[path] = result
    if len(known) == 2:
        assert known["short"] == known["general"]


def test_the_short_path_launches_few_operators(engine: Any) -> None:
    """Staging is one copy and one operator, whatever the batch."""
    runner = runner_of(engine)
    step = runner.decode_step
    rows = step.padded_rows(3)
    assert rows == 4
    views = step.views(rows)
    assert views.staged_flat.numel() == 3 * rows
    assert views is step.views(rows)


def prompt_logprobs(output: Any) -> list[float]:
    """Log-probability of each prompt token after the first."""
    return [next(iter(step.values())).logprob for step in output.prompt_logprobs[1:]]


def test_prompt_logprobs_of_prompts_read_token_by_token(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prompts that are read one token a step look like decodes; their log-probabilities are those of whole prompts."""
    from vllm import SamplingParams

    prompts = [{"prompt_token_ids": tokens} for tokens in ([7, 9, 11, 13, 15, 17], [20, 30, 40])]
    wish = SamplingParams(temperature=0, max_tokens=2, ignore_eos=True, detokenize=False, prompt_logprobs=0)
    whole = [prompt_logprobs(output) for output in engine.generate(prompts, wish, use_tqdm=False)]
    scheduler = engine.llm_engine.engine_core.engine_core.scheduler
    monkeypatch.setattr(scheduler.scheduler_config, "long_prefill_token_threshold", 1)
    stepwise = [prompt_logprobs(output) for output in engine.generate(prompts, wish, use_tqdm=False)]
    for got, expected in zip(stepwise, whole, strict=True):
        # bfloat16 activations; the rows differ by whole units.
        assert got == pytest.approx(expected, abs=0.1)


def test_a_step_staged_again_leaves_the_first_copy_alone(engine: Any) -> None:
    """A pinned buffer is read by its copy after the call returns, so a second staging must not write into it."""
    step = runner_of(engine).decode_step
    storages = {step.views(rows).staged_cpu.untyped_storage().data_ptr() for rows in (2, 4)}
    assert len(storages) == 2


def test_sampling_where_no_forward_pass_succeeded_gives_none(engine: Any) -> None:
    """None makes the engine raise the failure of the forward pass; an empty output would hide it behind a KeyError."""
    assert runner_of(engine).sample_tokens(None) is None
