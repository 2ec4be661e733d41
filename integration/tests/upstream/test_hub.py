"""Models are found by their published names through huggingface_hub's own look-up in its cache, offline."""

import json
from pathlib import Path

import pytest
from huggingface_hub import snapshot_download
from transformers import AutoConfig, AutoTokenizer

from ascend_integration.upstream.hub import write_hub
from ascend_integration.upstream.stand_ins import STAND_INS, StandIn

TWINS = StandIn(("some/first", "other/second"), "bert", "embed", 64, {"num_key_value_heads": None}, "cls", 32)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    write_hub(home, (TWINS,), {})
    return home


@pytest.mark.parametrize("name", TWINS.names)
def test_a_model_has_its_architecture_and_length_under_every_name(home: Path, name: str) -> None:
    folder = Path(snapshot_download(name, cache_dir=home / "hub", local_files_only=True))
    config = AutoConfig.from_pretrained(folder)
    assert (config.model_type, config.max_position_embeddings) == ("bert", 64)
    assert "num_key_value_heads" not in json.loads((folder / "config.json").read_text())
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert tokenizer.decode(tokenizer.encode("Hello, world")) == "Hello, world"
    assert tokenizer.model_max_length == 64


def test_every_name_stands_for_one_model() -> None:
    names = [name for stand_in in STAND_INS for name in stand_in.names]
    assert len(names) == len(set(names))
