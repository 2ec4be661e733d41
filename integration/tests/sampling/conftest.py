"""The tiny checkpoint with its oracle and engines."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ascend_integration.checkpoints.tiny import TINY_MODELS
from ascend_integration.engine.in_process import in_process_engine
from ascend_integration.oracle import Reference

from .engines import ENGINES, Served
from .words import save_word_tokenizer


@pytest.fixture(scope="package")
def tiny_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny Llama with a tokenizer whose text is one two-letter word per token."""
    folder = TINY_MODELS["llama"].save(tmp_path_factory.mktemp("models") / "llama-with-words")
    save_word_tokenizer(folder)
    return folder


@pytest.fixture(scope="package")
def oracle(tiny_checkpoint: Path) -> Reference:
    """transformers' float32 model of the tiny checkpoint."""
    return Reference.load(tiny_checkpoint)


@pytest.fixture(scope="package")
def served(request: pytest.FixtureRequest, tiny_checkpoint: Path, oracle: Reference) -> Iterator[Served]:
    """The float32 engine of the name in `request.param`."""
    settings = ENGINES[request.param]
    with in_process_engine(
        str(tiny_checkpoint), dtype="float32", additional_config={"allow_float32": True}, **settings
    ) as llm:
        assert llm.llm_engine.vllm_config.scheduler_config.async_scheduling == settings["async_scheduling"]
        yield Served(llm, oracle)
