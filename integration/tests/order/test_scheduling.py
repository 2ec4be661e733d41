"""Asynchronous scheduling under the check of stream order, and in random orders: the same tokens, no complaint."""

from collections.abc import Iterator
from typing import Any

import pytest
from vllm import LLM

from ascend_integration.checkpoints.tiny import TINY_MODELS
from ascend_integration.engine.grid import GRAPH_SIZES
from ascend_integration.engine.in_process import in_process_engine
from ascend_sim import instruments

from .requests import REQUESTS

_FULL_GRAPHS = {
    "enforce_eager": False,
    "compilation_config": {"cudagraph_mode": "FULL_DECODE_ONLY", "cudagraph_capture_sizes": GRAPH_SIZES},
}


@pytest.fixture(scope="module", params=[_FULL_GRAPHS, {"enforce_eager": True}], ids=["graphs", "eager"])
def llm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LLM]:
    """The tiny Llama, started and captured under the check; steps of 64 tokens mix prefills with decodes."""
    folder = TINY_MODELS["llama"].save(tmp_path_factory.mktemp("models") / "llama")
    engine = in_process_engine(
        str(folder),
        skip_tokenizer_init=True,
        dtype="float32",
        additional_config={"allow_float32": True},
        async_scheduling=True,
        max_num_batched_tokens=64,
        max_num_seqs=4,
        **request.param,
    )
    with instruments.check_order():
        llm = engine.__enter__()
    yield llm
    engine.__exit__(None, None, None)


def answers(llm: LLM) -> list[dict[str, Any]]:
    """Tokens and log-probabilities of every request, submitted together."""
    prompts = [{"prompt_token_ids": prompt} for prompt, _ in REQUESTS]
    outputs = llm.generate(prompts, [parameters for _, parameters in REQUESTS], use_tqdm=False)
    return [{"tokens": list(output.outputs[0].token_ids), "logprobs": output.outputs[0].logprobs} for output in outputs]


@pytest.fixture(scope="module")
def expected(llm: LLM) -> list[dict[str, Any]]:
    """The answers of the engine as it runs without instruments."""
    return answers(llm)


def test_every_use_of_memory_is_ordered(llm: LLM, expected: list[dict[str, Any]]) -> None:
    with instruments.check_order():
        assert answers(llm) == expected


@pytest.mark.parametrize("seed", range(3))
def test_answers_do_not_depend_on_the_order_of_work(llm: LLM, expected: list[dict[str, Any]], seed: int) -> None:
    with instruments.random_order(seed):
        assert answers(llm) == expected
