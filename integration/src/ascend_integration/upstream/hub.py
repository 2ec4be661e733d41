"""A cache of the Hugging Face hub that holds the stand-ins, laid out as huggingface_hub lays out its own.

With `HF_HOME` on it and `HF_HUB_OFFLINE=1`, vLLM and transformers find a model by its published name in every process,
and nothing in them is replaced.
"""

import hashlib
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from ascend_integration.checkpoints.adapters import save_adapter
from ascend_integration.checkpoints.cache import default_cache_root, make_once
from ascend_integration.checkpoints.idefics3 import save_idefics3
from ascend_integration.checkpoints.smollm2 import smollm2_checkpoint
from ascend_integration.upstream.stand_ins import STAND_INS, StandIn

# What a name stands for beside the tiny random models: SmolLM2 itself, where a test needs words.
SMOLLM2 = ("HuggingFaceTB/SmolLM2-135M-Instruct",)
# The tests that are selected here take from these that a model has images, not its architecture: an Idefics3 stands for
# them.
WITH_IMAGES = ("llava-hf/llava-1.5-7b-hf", "Qwen/Qwen2-VL-2B-Instruct", "Qwen/Qwen2.5-VL-3B-Instruct")
ADAPTERS = {
    "charent/self_cognition_Alice": ("Qwen/Qwen3-0.6B", 1),
    "charent/self_cognition_Bob": ("Qwen/Qwen3-0.6B", 2),
}
# Part of the folder's name: raise it when the same table is to give other content.
_VERSION = 3


def _add(hub: Path, name: str, fill: Callable[[Path], object]) -> Path:
    """Write a repository of one revision, named by the digest of its name."""
    commit = hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()
    repository = hub / f"models--{name.replace('/', '--')}"
    snapshot = repository / "snapshots" / commit
    snapshot.mkdir(parents=True)
    fill(snapshot)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    return snapshot


def _copy_of(source: Path) -> Callable[[Path], object]:
    return lambda folder: shutil.copytree(source, folder, dirs_exist_ok=True)


def write_hub(home: Path, stand_ins: tuple[StandIn, ...], adapters: Mapping[str, tuple[str, int]]) -> None:
    """Write every stand-in under each of its names, adapters (name: base and seed) and SmolLM2 below `home`."""
    hub = home / "hub"
    written: dict[str, Path] = {}
    for stand_in in stand_ins:
        first, *others = stand_in.names
        written[first] = _add(hub, first, stand_in.save)
        for other in others:
            written[other] = _add(hub, other, _copy_of(written[first]))
    for name, (base, seed) in adapters.items():
        merged = home / "merged"
        _add(hub, name, lambda folder: _save_adapter(written[base], folder, merged, seed))  # noqa: B023 - called at once
        shutil.rmtree(merged)
    for name in SMOLLM2:
        _add(hub, name, _copy_of(smollm2_checkpoint()))
    for name in WITH_IMAGES:
        _add(hub, name, save_idefics3)


def _save_adapter(base: Path, folder: Path, merged: Path, seed: int) -> None:
    folder.rmdir()  # save_adapter makes it
    save_adapter(base, folder, merged, rank=8, alpha=16, seed=seed)


def stand_in_home(cache_root: Path | None = None) -> Path:
    """The folder for `HF_HOME`; written on the first call for a table of stand-ins."""
    table = repr((_VERSION, STAND_INS, SMOLLM2, WITH_IMAGES, ADAPTERS)).encode()
    folder = (cache_root or default_cache_root()) / "upstream" / f"hub-{hashlib.sha256(table).hexdigest()[:16]}"
    return make_once(folder, lambda target: write_hub(target, STAND_INS, ADAPTERS))
