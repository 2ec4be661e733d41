"""An engine that sleeps gives back memory, wakes with its graphs, and takes new weights as RL frameworks give them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from vllm import LLM

from ascend_integration.checkpoints.tiny import TINY_MODELS
from ascend_integration.engine.grid import GRAPH_SIZES
from ascend_integration.engine.in_process import greedy_tokens, in_process_engine
from ascend_integration.oracle import Reference
from ascend_sim import instruments

NEW_TOKENS = 12
PROMPTS = [[(11 * index * (row + 2) + row) % 500 + 5 for index in range(9 + 60 * row)] for row in range(3)]
KV_BYTES = 64 << 20


class Trainer:
    """What a framework adds to workers with `worker_extension_cls`: weights by their names in the checkpoint."""

    def take_weights(self, file: str) -> int:
        return len(self.model_runner.get_model().load_weights(load_file(file).items()))

    def bytes_of_weights(self) -> int:
        return sum(it.nbytes for it in self.model_runner.get_model().parameters())


@dataclass(frozen=True)
class Sleeper:
    """An engine; the folder of its model and of another; transformers' tokens for each."""

    llm: LLM
    folders: tuple[Path, Path]
    expected: tuple[list[list[int]], list[list[int]]]

    def tokens(self) -> list[list[int]]:
        """Greedy continuations, of which every step but the first replays a graph."""
        with instruments.counting() as counts:
            tokens = greedy_tokens(self.llm, PROMPTS, NEW_TOKENS)
        assert counts["replays"] >= NEW_TOKENS - 1
        return tokens


@pytest.fixture(scope="module")
def sleeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sleeper]:
    family, parent = TINY_MODELS["llama"], tmp_path_factory.mktemp("sleep")
    folders = family.save(parent / "model"), replace(family, seed=7).save(parent / "other")
    continuations = [[Reference.load(it).greedy(prompt, NEW_TOKENS) for prompt in PROMPTS] for it in folders]
    assert min(it.gap for model in continuations for it in model) > 1e-3
    first, second = ([it.tokens for it in model] for model in continuations)
    assert first != second
    with in_process_engine(
        str(folders[0]),
        skip_tokenizer_init=True,
        dtype="float32",
        additional_config={"allow_float32": True},
        compilation_config={"cudagraph_mode": "FULL_DECODE_ONLY", "cudagraph_capture_sizes": GRAPH_SIZES},
        enable_sleep_mode=True,
        kv_cache_memory_bytes=KV_BYTES,
        worker_extension_cls=f"{__name__}.Trainer",
    ) as llm:
        yield Sleeper(llm, folders, (first, second))


def supports(feature: str) -> pytest.MarkDecorator:
    return pytest.mark.supports("every text model", feature, "transformers, greedy tokens")


@supports("sleep mode, level 1")
def test_weights_kept_on_the_host(sleeper: Sleeper):
    llm = sleeper.llm
    assert sleeper.tokens() == sleeper.expected[0]
    before = torch.npu.memory_allocated()
    llm.sleep(level=1)
    (weights,) = llm.collective_rpc("bytes_of_weights")
    # The cache is whole blocks.
    assert before - torch.npu.memory_allocated() >= 0.95 * KV_BYTES + weights
    llm.wake_up()
    assert sleeper.tokens() == sleeper.expected[0]


@supports("sleep mode, level 2, weights reloaded")
def test_new_weights_before_the_cache_is_back(sleeper: Sleeper):
    llm = sleeper.llm
    for folder, expected in zip(reversed(sleeper.folders), reversed(sleeper.expected), strict=True):
        llm.sleep(level=2)
        llm.wake_up(tags=["weights"])
        llm.collective_rpc("reload_weights", kwargs={"weights_path": str(folder)})
        llm.wake_up(tags=["kv_cache"])
        assert sleeper.tokens() == expected


@supports("sleep mode, level 2, weights pushed by name")
def test_weights_pushed_by_a_framework(sleeper: Sleeper):
    llm = sleeper.llm
    for folder, expected in zip(reversed(sleeper.folders), reversed(sleeper.expected), strict=True):
        llm.sleep(level=2)
        llm.wake_up()
        (loaded,) = llm.collective_rpc("take_weights", args=(str(folder / "model.safetensors"),))
        assert loaded
        assert sleeper.tokens() == expected


def test_unknown_levels_and_tags_are_refused(sleeper: Sleeper):
    with pytest.raises(ValueError, match="sleep level 3 is not possible; 1 keeps the weights in host memory"):
        sleeper.llm.collective_rpc("sleep", args=(3,))
    with pytest.raises(ValueError, match=r"wake-up tags \['cache'\] are unknown; use weights and kv_cache"):
        sleeper.llm.collective_rpc("wake_up", args=(["cache"],))
