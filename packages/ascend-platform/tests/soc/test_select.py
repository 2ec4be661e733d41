"""Which chip belongs to which family. Names and numbers: torch_npu's SocVersion enumeration."""

from __future__ import annotations

import pytest
import torch

from vllm_ascend.soc import BUILT_IN, SocError, configured_profile, identify


@pytest.mark.parametrize(
    ("chip", "number", "family"),
    [
        ("Ascend910B1", 220, "A2"),
        ("Ascend910B2", 221, "A2"),
        ("Ascend910B2C", 222, "A2"),
        ("Ascend910B3", 223, "A2"),
        ("Ascend910B4", 224, "A2"),
        ("Ascend910B4-1", 225, "A2"),
        ("ascend910b3", 223, "A2"),
        ("Ascend910_9391", 250, "A3"),
        ("Ascend910_9392", 251, "A3"),
        ("Ascend910_9381", 252, "A3"),
        ("Ascend910_9382", 253, "A3"),
        ("Ascend910_9372", 254, "A3"),
        ("Ascend910_9362", 255, "A3"),
        ("Ascend950PR_9599", 260, "A5"),
    ],
)
def test_chips_and_their_families(chip: str, number: int, family: str) -> None:
    assert identify(chip, number, BUILT_IN.values()).name == family


def test_a_new_name_of_a_known_number_is_known() -> None:
    assert identify("Ascend910Z", 223, BUILT_IN.values()).name == "A2"


@pytest.mark.parametrize(("chip", "number"), [("Ascend310P3", 202), ("Ascend910A", 103), ("", 0)])
def test_an_unknown_chip_is_named_as_seen(chip: str, number: int) -> None:
    says = rf"unknown chip '{chip}' \(torch_npu SoC number {number}\).*A2, A3, A5.*ascend-310p"
    with pytest.raises(SocError, match=says):
        identify(chip, number, BUILT_IN.values())


def test_a_name_and_a_number_that_disagree_are_refused() -> None:
    with pytest.raises(SocError, match="'Ascend910B1' is of the family A2, its SoC number 250 of A3"):
        identify("Ascend910B1", 250, BUILT_IN.values())


def test_the_key_beats_the_variable_beats_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VLLM_ASCEND_SOC", raising=False)
    assert configured_profile().name == "A2"
    monkeypatch.setenv("VLLM_ASCEND_SOC", "a3")
    assert configured_profile().name == "A3"
    assert configured_profile(key="A5").name == "A5"


def test_an_unknown_family_lists_the_allowed_ones() -> None:
    with pytest.raises(SocError, match="soc_profile='B7' is no known SoC family; allowed: A2, A3, A5"):
        configured_profile(key="B7")


@pytest.mark.parametrize("profile", BUILT_IN.values(), ids=lambda it: it.name)
def test_profiles_take_half_precision_and_no_float32(profile: object) -> None:
    assert profile.dtypes == (torch.bfloat16, torch.float16)
    assert profile.kernel_block_sizes[0] == 128
    assert profile.unified_buffer_bytes == 196_608  # "1572864 bits available" in the Ascend Triton compiler's message
