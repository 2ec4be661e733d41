"""Embeddings, classes and rewards equal transformers' within rounding."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from vllm import LLM, PoolingParams

from ascend_integration.checkpoints.pooling import POOLING_MODELS, PoolingModel, Task
from ascend_integration.engine.in_process import in_process_engine
from ascend_integration.oracle.pooling import PoolingReference
from ascend_sim import instruments

from .conftest import SHARED_PREFIX

# Two orders of summation in float32, through three layers of values of about 1.
TOLERANCE = {"rtol": 1e-4, "atol": 1e-4}


@dataclass(frozen=True)
class Pooled:
    """An engine of a pooling model and the results that transformers gives for the prompts."""

    family: PoolingModel
    llm: LLM
    prompts: list[list[int]]
    expected: list[torch.Tensor]

    def results(self, prompts: list[list[int]]) -> list[torch.Tensor]:
        """What the engine gives for `prompts`, submitted together."""
        inputs = [{"prompt_token_ids": prompt} for prompt in prompts]
        # Logits show more than the probabilities that are made of them; embeddings have unit length.
        raw = PoolingParams(use_activation=self.family.task is Task.EMBED)
        outputs = self.llm.encode(inputs, raw, pooling_task=self.family.task.value, use_tqdm=False)
        return [output.outputs.data.float() for output in outputs]

    def cached_tokens(self, prompt: list[int]) -> int:
        """How many tokens of `prompt` the engine took from its cache."""
        inputs = [{"prompt_token_ids": prompt}]
        return self.llm.encode(inputs, pooling_task=self.family.task.value, use_tqdm=False)[0].num_cached_tokens


@pytest.fixture(scope="module")
def pooled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, prompts) -> Iterator[Pooled]:
    """The engine and the oracle for `(family, settings)`, in float32."""
    family, settings = request.param
    folder = family.save(tmp_path_factory.mktemp("models") / family.name)
    reference = PoolingReference.load(family, folder)
    with in_process_engine(
        str(folder),
        dtype="float32",
        additional_config={"allow_float32": True},
        **{**family.engine, **settings},
    ) as llm:
        yield Pooled(family, llm, prompts, [reference(prompt) for prompt in prompts])


def assert_all_close(actual: list[torch.Tensor], expected: list[torch.Tensor]) -> None:
    assert len(actual) == len(expected)
    for mine, theirs in zip(actual, expected, strict=True):
        torch.testing.assert_close(mine, theirs, **TOLERANCE)


WHOLE_PROMPTS = {"max_num_batched_tokens": 512}
# Steps of 96 tokens cut prompts into chunks, of which pieces of the model up to 64 tokens run as graphs.
PIECES = {"cudagraph_mode": "PIECEWISE", "cudagraph_capture_sizes": [1, 2, 4, 32, 64, 96]}
CHUNKS = {"max_num_batched_tokens": 96, "enable_chunked_prefill": True, "enable_prefix_caching": True}


def engines(names: Iterable[str], settings: dict[str, Any], suffix: str = "", shows: str = "") -> list:
    """Parameters of the fixture `pooled` with readable ids; `shows` is what the settings show beyond the family."""
    return [
        pytest.param(
            (POOLING_MODELS[name], settings),
            id=f"{name}{suffix}",
            marks=pytest.mark.supports(name, POOLING_MODELS[name].feature + shows, "transformers, values"),
        )
        for name in names
    ]


@pytest.mark.parametrize(
    "pooled",
    [
        *engines(POOLING_MODELS, WHOLE_PROMPTS),
        *engines(["bert"], {**WHOLE_PROMPTS, "compilation_config": PIECES}, "-graphs", ", piecewise graphs"),
        *engines(
            ["qwen3-embedding"],
            {**CHUNKS, "compilation_config": PIECES},
            "-graphs-chunks",
            ", piecewise graphs, chunked prompts",
        ),
    ],
    indirect=True,
)
class TestPooling:
    def test_together(self, pooled: Pooled):
        assert_all_close(pooled.results(pooled.prompts), pooled.expected)

    def test_alone(self, pooled: Pooled):
        assert_all_close([pooled.results([prompt])[0] for prompt in pooled.prompts], pooled.expected)

    def test_attention_runs_on_the_fused_operator(self, pooled: Pooled):
        with instruments.counting() as counts:
            pooled.results(pooled.prompts[:1])
        assert counts["op:npu::npu_fused_infer_attention_score.out"] == 3  # one per layer


@pytest.mark.parametrize("pooled", engines(["qwen3-embedding"], CHUNKS, "", ", prefix caching"), indirect=True)
class TestPrefixCaching:
    """Keys and values from the cache give the embedding that computing them gives (a public failure report)."""

    def test_embeddings_are_the_same(self, pooled: Pooled):
        assert pooled.llm.reset_prefix_cache()
        first, second = pooled.prompts[-2:]
        assert pooled.cached_tokens(first) == 0
        assert pooled.cached_tokens(second) == SHARED_PREFIX
        assert_all_close(pooled.results([second]), pooled.expected[-1:])


def test_the_head_of_a_classifier_in_bfloat16_is_in_float32(tmp_path: Path, prompts: list[list[int]]):
    """vLLM documents it; its own test_auto_prefix_cache_support shows a platform that rounds logits instead."""
    family = POOLING_MODELS["qwen3-classifier"]
    folder = family.save(tmp_path / family.name)
    with in_process_engine(str(folder), dtype="bfloat16", **WHOLE_PROMPTS) as llm:
        raw = PoolingParams(use_activation=False)
        (output,) = llm.encode([{"prompt_token_ids": prompts[0]}], raw, pooling_task="classify", use_tqdm=False)
    logits = output.outputs.data
    assert logits.dtype is torch.float32
    assert not torch.equal(logits, logits.bfloat16().float())
