"""Beam search, priorities, KV-cache events, metrics, calls to workers, new weights: on one engine with graphs."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from vllm import LLM, SamplingParams
from vllm.distributed.kv_events import AllBlocksCleared, BlockStored
from vllm.sampling_params import BeamSearchParams

from ascend_integration.checkpoints.tiny import TINY_MODELS, VOCAB_SIZE
from ascend_integration.checkpoints.tokenizers import SPECIAL, save_word_tokenizer
from ascend_integration.engine.grid import GRAPH_SIZES
from ascend_integration.engine.in_process import BLOCK_SIZE, greedy_tokens, in_process_engine
from ascend_integration.engine.kv_events import KVEventSubscriber
from ascend_integration.oracle import Reference

NEW_TOKENS = 16
PROMPTS = [[(11 * index * (row + 2) + row) % 500 + 5 for index in range(9 + 20 * row)] for row in range(4)]
LONG_PROMPT = [index % 490 + 7 for index in range(300)]
BEAMS = 3


def supports(feature: str, oracle: str) -> pytest.MarkDecorator:
    return pytest.mark.supports("every text model", feature, oracle)


class Extension:
    """What a framework adds to workers with `worker_extension_cls`."""

    def device_of_weights(self) -> str:
        return next(self.model_runner.model.parameters()).device.type


@dataclass(frozen=True)
class Serving:
    """An engine, the folders of its model and of one with other weights, and what the engine publishes."""

    llm: LLM
    folder: Path
    other: Path
    events: KVEventSubscriber


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    parent = tmp_path_factory.mktemp("serving")
    family = TINY_MODELS["llama"]
    folder, other = family.save(parent / "model"), replace(family, seed=7).save(parent / "other")
    save_word_tokenizer([f"w{index}" for index in range(VOCAB_SIZE - len(SPECIAL))], folder)
    endpoint = f"ipc://{parent}/events"
    subscriber = KVEventSubscriber(endpoint)
    with in_process_engine(
        str(folder),
        dtype="float32",
        additional_config={"allow_float32": True},
        compilation_config={"cudagraph_mode": "FULL_DECODE_ONLY", "cudagraph_capture_sizes": GRAPH_SIZES},
        scheduling_policy="priority",
        worker_extension_cls=f"{__name__}.Extension",
        disable_log_stats=False,
        kv_events_config={"enable_kv_cache_events": True, "publisher": "zmq", "endpoint": endpoint},
    ) as llm:
        yield Serving(llm, folder, other, subscriber)
    subscriber.close()


@supports("beam search", "transformers, sequences")
@torch.inference_mode()
def test_beam_search(serving: Serving):
    model = Reference.load(serving.folder).model
    expected = []
    for prompt in PROMPTS:
        sequences = model.generate(
            torch.tensor([prompt]),
            attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
            do_sample=False,
            num_beams=BEAMS,
            num_return_sequences=BEAMS,
            max_new_tokens=6,
            min_new_tokens=6,
            eos_token_id=None,
            pad_token_id=0,
        )
        expected.append(sequences.tolist())
    parameters = BeamSearchParams(beam_width=BEAMS, max_tokens=6, ignore_eos=True)
    outputs = serving.llm.beam_search([{"prompt_token_ids": prompt} for prompt in PROMPTS], parameters)
    assert [[list(beam.tokens) for beam in output.sequences] for output in outputs] == expected


@supports("priority scheduling", "vLLM's documentation")
def test_more_urgent_requests_start_first(serving: Serving):
    engine = serving.llm.llm_engine
    parameters = SamplingParams(temperature=0, max_tokens=2, ignore_eos=True, detokenize=False)
    # The budget of a step is below two of the prompts: they start one after the other.
    for name, priority in (("late", 5), ("urgent", -1), ("usual", 0)):
        prompt = [ord(name[0]), *LONG_PROMPT[:250]]
        engine.add_request(name, {"prompt_token_ids": prompt}, parameters, priority=priority)
    started: list[str] = []
    while engine.has_unfinished_requests():
        started += [output.request_id for output in engine.step() if output.request_id not in started]
    assert started == ["urgent", "usual", "late"]


@supports("KV-cache events", "vLLM's documentation")
def test_events_of_the_cache(serving: Serving):
    serving.llm.reset_prefix_cache()
    greedy_tokens(serving.llm, [PROMPTS[0]], 1)
    serving.events.wait_for(lambda events: any(isinstance(event, AllBlocksCleared) for event in events), 20)
    greedy_tokens(serving.llm, [LONG_PROMPT], 2)

    def two_blocks(events: list) -> bool:
        return sum(len(event.block_hashes) for event in events if isinstance(event, BlockStored)) >= 2

    stored = [event for event in serving.events.wait_for(two_blocks, 20) if isinstance(event, BlockStored)]
    assert [token for event in stored for token in event.token_ids] == LONG_PROMPT[: 2 * BLOCK_SIZE]
    assert {event.block_size for event in stored} == {BLOCK_SIZE}


@supports("metrics", "counted requests and tokens")
def test_metrics_count_tokens(serving: Serving):
    def counted(name: str) -> float:
        return sum(metric.value for metric in serving.llm.get_metrics() if metric.name == name)

    names = ("vllm:prompt_tokens", "vllm:generation_tokens", "vllm:request_success")
    before = [counted(name) for name in names]
    greedy_tokens(serving.llm, PROMPTS, NEW_TOKENS)
    after = [counted(name) for name in names]
    expected = [sum(map(len, PROMPTS)), len(PROMPTS) * NEW_TOKENS, len(PROMPTS)]
    assert [new - old for new, old in zip(after, before, strict=True)] == expected


@supports("collective RPC, worker extensions", "vLLM's documentation")
def test_calls_to_workers(serving: Serving):
    assert serving.llm.collective_rpc("device_of_weights") == ["npu"]


@supports("new weights while serving", "transformers, greedy tokens")
def test_new_weights_and_the_old_ones_again(serving: Serving):
    def expected(folder: Path) -> list[list[int]]:
        continuations = [Reference.load(folder).greedy(prompt, NEW_TOKENS) for prompt in PROMPTS]
        assert min(continuation.gap for continuation in continuations) > 1e-3
        return [continuation.tokens for continuation in continuations]

    old, new = expected(serving.folder), expected(serving.other)
    assert old != new
    for folder, tokens in ((serving.other, new), (serving.folder, old)):
        serving.llm.collective_rpc("reload_weights", kwargs={"weights_path": str(folder)})
        assert serving.llm.reset_prefix_cache()
        assert greedy_tokens(serving.llm, PROMPTS, NEW_TOKENS) == tokens
