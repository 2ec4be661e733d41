"""Embeddings, classes and rewards equal transformers' within rounding."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import torch
from vllm import LLM, PoolingParams

from ascend_integration.checkpoints.pooling import POOLING_MODELS, PoolingModel, Task
from ascend_integration.engine.in_process import in_process_engine
from ascend_integration.oracle.pooling import PoolingReference

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


@pytest.fixture(scope="module")
def pooled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, prompts) -> Iterator[Pooled]:
    """The engine and the oracle for `(family, settings)`, in float32."""
    family, settings = request.param
    folder = family.save(tmp_path_factory.mktemp("models") / family.name)
    reference = PoolingReference.load(family, folder)
    with in_process_engine(
        str(folder),
        skip_tokenizer_init=True,
        dtype="float32",
        additional_config={"allow_float32": True},
        **family.engine,
        **settings,
    ) as llm:
        yield Pooled(family, llm, prompts, [reference(prompt) for prompt in prompts])


def assert_all_close(actual: list[torch.Tensor], expected: list[torch.Tensor]) -> None:
    assert len(actual) == len(expected)
    for mine, theirs in zip(actual, expected, strict=True):
        torch.testing.assert_close(mine, theirs, **TOLERANCE)


@pytest.mark.parametrize(
    "pooled", [pytest.param((family, {}), id=name) for name, family in POOLING_MODELS.items()], indirect=True
)
class TestPooling:
    def test_together(self, pooled: Pooled):
        assert_all_close(pooled.results(pooled.prompts), pooled.expected)

    def test_alone(self, pooled: Pooled):
        assert_all_close([pooled.results([prompt])[0] for prompt in pooled.prompts], pooled.expected)
