"""Tests of the platform without engines, and a few that start vLLM's processes.

A component is a real distribution here: a module, and metadata with entry points, in a temporary folder on the path.
"""

from __future__ import annotations

import os

# Before torch and vLLM are imported; both read them once.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")

import json
import sys
import sysconfig
import venv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

TINY_LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 512,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 512,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "torch_dtype": "bfloat16",
}


def pytest_configure(config: pytest.Config) -> None:
    """Warnings of packages that vLLM imports, which neither it nor we can mend."""
    # torch.utils.mkldnn of torch 2.13 decorates its own classes with what torch deprecates.
    config.addinivalue_line("filterwarnings", "ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")


class FakeInstaller:
    """Puts made-up distributions on the path of this process and of its children."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.modules: set[str] = set()

    def add(self, distribution: str, entry_points: dict[str, dict[str, str]], modules: dict[str, str]) -> None:
        """Install `distribution` with `entry_points[group][name] = value` and `modules[name] = source`."""
        metadata = self.folder / f"{distribution.replace('-', '_')}-1.2.3.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2.3\n")
        lines = []
        for group, points in entry_points.items():
            lines += [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]
        (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n")
        for name, source in modules.items():
            (self.folder / f"{name}.py").write_text(source)
            self.modules.add(name)


@pytest.fixture
def installer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeInstaller]:
    """Made-up distributions, gone after the test."""
    from vllm_ascend.plugins import forget_components

    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")])))
    made = FakeInstaller(folder)
    forget_components()
    yield made
    forget_components()
    for name in made.modules:
        sys.modules.pop(name, None)


HIDDEN = {"vllm": ("vllm",), "torch-npu": ("torch_npu",), "triton-ascend": ("triton", "triton_ascend")}


@pytest.fixture
def environment_without(tmp_path: Path) -> Callable[[str], str]:
    """`environment_without(distribution)` is an interpreter that has everything this one has but one distribution."""

    def make(distribution: str) -> str:
        folder = tmp_path / f"without-{distribution}"
        venv.EnvBuilder(symlinks=True, with_pip=False).create(folder)
        python = f"python{sys.version_info.major}.{sys.version_info.minor}"
        for entry in Path(sysconfig.get_path("purelib")).iterdir():
            name = entry.name.removesuffix(".dist-info").partition("-")[0]
            if name not in HIDDEN[distribution]:
                (folder / "lib" / python / "site-packages" / entry.name).symlink_to(entry)
        return str(folder / "bin" / "python")

    return make


def write_config(folder: Path, **changes: Any) -> str:
    """A model folder that holds a configuration and no weights."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({**TINY_LLAMA, **changes}))
    return str(folder)


@pytest.fixture(scope="session")
def tiny_llama(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a Llama configuration."""
    return write_config(tmp_path_factory.mktemp("models") / "llama")


@pytest.fixture
def model_folder(tmp_path: Path) -> Callable[..., str]:
    """`model_folder(**changes)` is the folder of the tiny Llama's configuration with some keys changed."""
    return lambda **changes: write_config(tmp_path / "model", **changes)


@pytest.fixture
def make_config(tiny_llama: str) -> Callable[..., Any]:
    """`make_config(**engine_arguments)` builds the VllmConfig as `vllm serve` does, for the tiny Llama by default."""
    from vllm.engine.arg_utils import EngineArgs

    def make(**arguments: Any) -> Any:
        return EngineArgs(**{"model": tiny_llama, "skip_tokenizer_init": True, **arguments}).create_engine_config()

    return make
