"""`--additional-config`: what is accepted, and how the rest is refused."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from vllm_ascend.config import AscendConfig, ConfigError
from vllm_ascend.plugins import collect
from vllm_ascend.plugins.groups import MOE


def test_defaults() -> None:
    config = AscendConfig.parse({})
    assert (config.soc_profile, config.allow_float32) == (None, False)


def test_it_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        AscendConfig.parse({}).allow_float32 = True


def test_a_key_that_vllm_itself_writes_is_left_to_vllm() -> None:
    assert AscendConfig.parse({"gdn_prefill_backend": "triton"}) == AscendConfig.parse({})


@pytest.mark.parametrize(
    ("given", "nearest"),
    [("alow_float32", "allow_float32"), ("allow_fp32", "allow_float32"), ("soc_profil", "soc_profile")],
)
def test_an_unknown_key_is_refused_with_the_nearest_known_one(given: str, nearest: str) -> None:
    with pytest.raises(ConfigError, match=f"unknown key '{given}'; did you mean '{nearest}'\\? Known keys: .*"):
        AscendConfig.parse({given: True})


def test_an_unknown_key_that_is_like_none_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"unknown key 'zzz'\. Known keys: allow_float32, moe, soc_profile"):
        AscendConfig.parse({"zzz": 1})


@pytest.mark.parametrize("value", ["yes", 1, [True]], ids=["text", "number", "list"])
def test_a_value_of_the_wrong_type_is_named(value: object) -> None:
    with pytest.raises(ConfigError, match=r"allow_float32 is .* of type .*boolean"):
        AscendConfig.parse({"allow_float32": value})


SECTION = """
from pydantic import BaseModel, ConfigDict, PositiveInt

class Mine(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    chunk_tokens: PositiveInt = 4096

def register(context):
    global HANDLE
    HANDLE = context.config_section(Mine)
"""


@pytest.fixture
def component(installer: Any) -> None:
    installer.add("my-moe", {MOE.name: {"mine": "my_moe_section:register"}}, {"my_moe_section": SECTION})


@pytest.mark.usefixtures("component")
def test_a_component_reads_its_own_section_with_its_own_model(make_config: Any) -> None:
    vllm_config = make_config(additional_config={"mine": {"chunk_tokens": 7}})
    import my_moe_section

    section = my_moe_section.HANDLE.of(vllm_config)
    assert isinstance(section, my_moe_section.Mine)
    assert section.chunk_tokens == 7
    assert my_moe_section.HANDLE.of(make_config()).chunk_tokens == 4096


@pytest.mark.usefixtures("component")
@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"chunk_tokens": 0}, r"section 'mine': chunk_tokens is 0, of type int; .*greater than 0"),
        ({"chunk_token": 1}, r"section 'mine': unknown key 'chunk_token'; did you mean 'chunk_tokens'\?"),
        (3, r"section 'mine' must be a JSON object, but it is 3 of type int"),
    ],
    ids=["out-of-range", "unknown-key", "no-object"],
)
def test_a_wrong_section_is_refused_in_its_name(value: object, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        AscendConfig.parse({"mine": value})


def test_a_section_without_its_component_names_the_distribution() -> None:
    nothing = collect(points=lambda _: ())
    with pytest.raises(ConfigError, match=r"the section 'moe' needs .* ascend-moe provides; it is not installed"):
        AscendConfig.parse({"moe": {}}, nothing)


def test_a_section_of_a_component_that_has_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="the installed component 'spec_decode' takes no configuration"):
        AscendConfig.parse({"spec_decode": {}})


def test_it_is_parsed_once_per_config_object_and_not_shared(make_config: Any) -> None:
    first, second = make_config(), make_config(additional_config={"allow_float32": True})
    assert AscendConfig.of(first) is AscendConfig.of(first)
    assert not AscendConfig.of(first).allow_float32
    assert AscendConfig.of(second).allow_float32


def test_an_unknown_key_stops_the_engine_before_a_model_loads(make_config: Any) -> None:
    with pytest.raises(ValueError, match="did you mean 'allow_float32'"):
        make_config(additional_config={"allow_float": True})
