"""What the wheels declare: requirements, extras and entry points, as design and README promise them."""

from configparser import ConfigParser
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from ascend_integration.packaging import MEMBERS, PUBLISHED, Member, wheel_metadata

COMPONENTS = {"moe": "ascend-moe", "quant": "ascend-quant", "specdecode": "ascend-specdecode", "310p": "ascend-310p"}

ENTRY_POINTS = {
    "ascend-310p": {"vllm_ascend.soc": {"310p": "ascend_310p.vllm:register"}},
    "ascend-integration": {},
    "ascend-kernels": {},
    "ascend-moe": {
        "vllm_ascend.moe": {"moe": "ascend_moe.vllm:register"},
        "ascend_moe.eplb_policies": {
            "default": "ascend_moe.eplb.policies.default:DefaultPolicy",
            "flashlb": "ascend_moe.eplb.policies.flashlb:FlashLBPolicy",
            "optimal": "ascend_moe.eplb.policies.optimal:OptimalPolicy",
            "random": "ascend_moe.eplb.policies.random:RandomPolicy",
            "swift_balancer": "ascend_moe.eplb.policies.swift_balancer:SwiftBalancerPolicy",
        },
    },
    "ascend-quant": {"vllm_ascend.quantization": {"quantization": "ascend_quant.vllm:register"}},
    "ascend-sim": {"torch.backends": {"ascend_sim": "ascend_sim:_autoload"}},
    "ascend-specdecode": {"vllm_ascend.spec_decode": {"spec_decode": "ascend_specdecode.vllm:register"}},
    "vllm-ascend": {
        "console_scripts": {"vllm-ascend": "vllm_ascend.cli:app"},
        "vllm.platform_plugins": {"ascend": "vllm_ascend.plugins.vllm_hooks:platform_plugin"},
        "vllm.general_plugins": {"ascend": "vllm_ascend.plugins.vllm_hooks:general_plugin"},
    },
}

VERSIONS = {member.name: Version(member.version) for member in MEMBERS}


def requirements(wheel: Path) -> list[Requirement]:
    return [Requirement(text) for text in wheel_metadata(wheel).get_all("Requires-Dist") or ()]


@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.name)
def test_entry_points(wheels: dict[str, Path], member: Member) -> None:
    parser = ConfigParser(delimiters=("=",))
    with ZipFile(wheels[member.name]) as archive:
        for name in archive.namelist():
            if name.endswith(".dist-info/entry_points.txt"):
                parser.read_string(archive.read(name).decode())
    assert {group: dict(parser[group]) for group in parser.sections()} == ENTRY_POINTS[member.name]


def test_extras_of_the_platform_name_each_component_once(wheels: dict[str, Path]) -> None:
    by_extra: dict[str, set[str]] = {}
    for requirement in requirements(wheels["vllm-ascend"]):
        if requirement.marker:
            extra = str(requirement.marker).removeprefix("extra == ").strip("'\"")
            by_extra.setdefault(extra, set()).add(requirement.name)
    assert by_extra == {
        **{extra: {name} for extra, name in COMPONENTS.items()},
        "all": set(COMPONENTS.values()),
        "npu": {"torch-npu", "triton-ascend"},
        "sim": {"ascend-sim"},
    }


@pytest.mark.parametrize("name", ["vllm-ascend", "ascend-moe", "ascend-quant", "ascend-specdecode", "ascend-310p"])
def test_vllm_and_torch_npu_are_no_hard_requirements(wheels: dict[str, Path], name: str) -> None:
    hard = {requirement.name for requirement in requirements(wheels[name]) if not requirement.marker}
    assert hard.isdisjoint({"vllm", "torch-npu", "triton", "triton-ascend"})
    assert "ascend-kernels" in hard


def test_the_operators_require_torch_alone(wheels: dict[str, Path]) -> None:
    assert [it.name for it in requirements(wheels["ascend-kernels"]) if not it.marker] == ["torch"]


@pytest.mark.parametrize("member", PUBLISHED, ids=lambda member: member.name)
def test_ranges_between_members_admit_this_version_and_end_at_the_next_breaking_one(
    wheels: dict[str, Path], member: Member
) -> None:
    for requirement in requirements(wheels[member.name]):
        if requirement.name not in VERSIONS or requirement.name == member.name:
            continue
        version = VERSIONS[requirement.name]
        following = f"0.{version.minor + 1}" if version.major == 0 else str(version.major + 1)
        assert version in requirement.specifier
        assert requirement.specifier == SpecifierSet(f">={version.major}.{version.minor},<{following}")


@pytest.mark.parametrize("member", PUBLISHED, ids=lambda member: member.name)
def test_metadata_for_readers(wheels: dict[str, Path], member: Member) -> None:
    metadata = wheel_metadata(wheels[member.name])
    assert metadata["Author"] == "The vllm-ascend authors"
    assert metadata["Requires-Python"] == "<3.13,>=3.11"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload().startswith(f"# {member.name}\n")
    assert "Typing :: Typed" in metadata.get_all("Classifier")
