"""Tiny models, their greedy continuations by transformers, and one engine per point of the grid."""

import random
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from vllm import ModelRegistry

from ascend_integration.checkpoints.tiny import TINY_MODELS, VOCAB_SIZE
from ascend_integration.engine.grid import NEW_TOKENS, PROMPT_LENGTHS, SHARED_PREFIX
from ascend_integration.engine.in_process import in_process_engine
from ascend_integration.oracle import Greedy, Reference

from .served import Served

TinyFolder = Callable[[str], Path]
Continuations = Callable[[str], list[Greedy]]


@pytest.fixture(scope="session")
def prompts() -> list[list[int]]:
    """Eight prompts of mixed length; the two longest share their beginning."""
    draw = random.Random(0)
    made = [[draw.randrange(3, VOCAB_SIZE) for _ in range(length)] for length in PROMPT_LENGTHS]
    made[-1][:SHARED_PREFIX] = made[-2][:SHARED_PREFIX]
    return made


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> TinyFolder:
    """Folder of a tiny model by family name, made on first use."""

    @cache
    def folder(family: str) -> Path:
        return TINY_MODELS[family].save(tmp_path_factory.mktemp("models") / family)

    return folder


@pytest.fixture(scope="session")
def continuations(tiny_folder: TinyFolder, prompts: list[list[int]]) -> Continuations:
    """transformers' greedy continuation of every prompt by family name, computed on first use."""

    @cache
    def of(family: str) -> list[Greedy]:
        reference = Reference.load(tiny_folder(family))
        return [reference.greedy(prompt, NEW_TOKENS) for prompt in prompts]

    return of


@pytest.fixture(scope="module")
def served(
    request: pytest.FixtureRequest, tiny_folder: TinyFolder, continuations: Continuations, prompts: list[list[int]]
) -> Iterator[Served]:
    """The engine for `(family, settings)`, in float32."""
    family, settings = request.param
    if TINY_MODELS[family].sinks:
        ModelRegistry.register_model("SinksForCausalLM", "ascend_integration.engine.sinks_model:SinksForCausalLM")
    expected = [continuation.tokens for continuation in continuations(family)]
    with in_process_engine(
        str(tiny_folder(family)),
        skip_tokenizer_init=True,
        dtype="float32",
        additional_config={"allow_float32": True},
        **settings.engine_arguments(),
    ) as llm:
        yield Served(llm, prompts, expected, settings)
