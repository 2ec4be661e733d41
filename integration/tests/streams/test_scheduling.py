"""Asynchronous scheduling under the check of stream order, and in random orders: the same tokens, no complaint."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from vllm import LLM
from vllm.v1.worker.gpu_model_runner import GPUModelRunner

from ascend_integration.checkpoints.tiny import TINY_MODELS
from ascend_integration.engine.grid import GRAPH_SIZES
from ascend_integration.engine.in_process import in_process_engine
from ascend_sim import instruments

from .requests import REQUESTS

_FULL_GRAPHS = {
    "enforce_eager": False,
    "compilation_config": {"cudagraph_mode": "FULL_DECODE_ONLY", "cudagraph_capture_sizes": GRAPH_SIZES},
}


@contextmanager
def started(folder: Path, settings: dict[str, Any]) -> Iterator[LLM]:
    """The engine; steps of 64 tokens mix prefills with decodes."""
    with in_process_engine(
        str(folder),
        skip_tokenizer_init=True,
        dtype="float32",
        additional_config={"allow_float32": True},
        async_scheduling=True,
        max_num_batched_tokens=64,
        max_num_seqs=4,
        **settings,
    ) as llm:
        yield llm


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny Llama."""
    return TINY_MODELS["llama"].save(tmp_path_factory.mktemp("models") / "llama")


@pytest.fixture(scope="module", params=[_FULL_GRAPHS, {"enforce_eager": True}], ids=["graphs", "eager"])
def llm(request: pytest.FixtureRequest, folder: Path) -> Iterator[LLM]:
    """An engine that was started, and has captured its graphs, under the check."""
    with ExitStack() as stack:
        with instruments.check_order():
            llm = stack.enter_context(started(folder, request.param))
        yield llm


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


def without_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """No stream waits for another: the sampled tokens are copied to the host while they are computed."""
    monkeypatch.setattr(torch.npu.Event, "wait", lambda self, stream=None: None)


def without_waiting_for_staged_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host fills the staging buffers of a step while those of the step before are being copied."""
    monkeypatch.setattr(GPUModelRunner, "synchronize_input_prep", lambda self: nullcontext())


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (without_waits, "unordered: aten::copy_ on stream .* reads int"),
        (without_waiting_for_staged_inputs, "the host wrote to memory that a copy was still using"),
    ],
    ids=["streams", "host"],
)
def test_a_fault_of_the_runner_is_found(
    folder: Path, monkeypatch: pytest.MonkeyPatch, fault: Callable[[pytest.MonkeyPatch], None], message: str
) -> None:
    with started(folder, _FULL_GRAPHS) as llm:
        fault(monkeypatch)
        with pytest.raises(RuntimeError, match=message), instruments.check_order():
            answers(llm)
        monkeypatch.undo()
