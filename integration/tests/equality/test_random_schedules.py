"""Requests that arrive, end, are preempted and aborted at random: each still gets transformers' tokens.

A step takes another path through the model runner with every change of the batch: one token for each request or a
prefill among them, a captured batch size or not, the same requests as in the last step or others, a page table that
grew.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from vllm import LLM, SamplingParams
from vllm.sampling_params import RequestOutputKind

from ascend_integration.engine.grid import NEW_TOKENS
from ascend_integration.engine.in_process import BLOCK_SIZE, in_process_engine

from .conftest import Continuations, TinyFolder

REQUESTS = 24
# Float32 keys and values of one block in the three layers of two key-value heads.
BLOCK_BYTES = 2 * 3 * BLOCK_SIZE * 2 * 4
# The longest prompt needs three blocks and six requests run at once, so requests lose their pages now and then.
BLOCKS = 6
ENGINES: dict[str, tuple[str, dict[str, Any]]] = {
    # Batches of five and six are larger than any graph.
    "llama-graphs-async": ("llama", {"compilation_config": {"cudagraph_capture_sizes": [1, 2, 4]}}),
    "llama-eager-async": ("llama", {"enforce_eager": True}),
    "gemma3-graphs-sync": (
        "gemma3",
        {"compilation_config": {"cudagraph_capture_sizes": [1, 2, 4, 8]}, "async_scheduling": False},
    ),
}
HEAD_SIZES = {"llama": 16, "gemma3": 32}


@dataclass
class Scheduled:
    """An engine, the prompts and transformers' continuation of each."""

    llm: LLM
    prompts: list[list[int]]
    expected: list[list[int]]


@pytest.fixture(scope="module")
def scheduled(
    request: pytest.FixtureRequest, tiny_folder: TinyFolder, continuations: Continuations, prompts: list[list[int]]
) -> Iterator[Scheduled]:
    family, settings = ENGINES[request.param]
    with in_process_engine(
        str(tiny_folder(family)),
        skip_tokenizer_init=True,
        dtype="float32",
        additional_config={"allow_float32": True},
        max_num_seqs=6,
        max_num_batched_tokens=96,
        kv_cache_memory_bytes=(BLOCKS + 1) * BLOCK_BYTES * HEAD_SIZES[family],
        **{"async_scheduling": True, **settings},
    ) as llm:
        yield Scheduled(llm, prompts, [continuation.tokens for continuation in continuations(family)])


def parameters(draw: random.Random, tokens: int) -> SamplingParams:
    """Greedy, with whatever of the sampler a request may ask for that does not change its tokens."""
    return SamplingParams(
        temperature=0,
        max_tokens=tokens,
        ignore_eos=True,
        detokenize=False,
        logprobs=draw.choice([None, None, 0, 3]),
        prompt_logprobs=draw.choice([None, None, None, 1]),
        output_kind=draw.choice([RequestOutputKind.FINAL_ONLY, RequestOutputKind.CUMULATIVE]),
    )


@pytest.mark.parametrize("scheduled", ENGINES, indirect=True)
@pytest.mark.parametrize("seed", [0, 2, 3])
def test_every_request_gets_its_own_tokens(scheduled: Scheduled, seed: int):
    draw, engine = random.Random(seed), scheduled.llm.llm_engine
    scheduler = engine.engine_core.engine_core.scheduler
    waiting = [(draw.randrange(len(scheduled.prompts)), draw.randint(1, NEW_TOKENS)) for _ in range(REQUESTS)]
    wanted, got, aborted, preemptions = {}, {}, set(), 0
    while waiting or engine.has_unfinished_requests():
        while waiting and draw.random() < 0.6:
            prompt, tokens = waiting.pop()
            name = f"{seed}-{len(waiting)}"
            wanted[name] = scheduled.expected[prompt][:tokens]
            engine.add_request(name, {"prompt_token_ids": scheduled.prompts[prompt]}, parameters(draw, tokens))
        running = [name for name in wanted if name not in got and name not in aborted]
        if running and draw.random() < 0.02:
            name = draw.choice(running)
            engine.abort_request([name])
            aborted.add(name)
        for output in engine.step():
            if output.finished:
                got[output.request_id] = list(output.outputs[0].token_ids)
        preemptions += sum(request.num_preemptions for request in scheduler.requests.values())
    assert preemptions, "the schedule never ran out of pages: it does not test what it is for"
    assert got == {name: tokens for name, tokens in wanted.items() if name not in aborted}
