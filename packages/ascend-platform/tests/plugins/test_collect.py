"""What components claim, and what is kept of those that fail."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from typing import Any

import pytest

from vllm_ascend.api import API_VERSION, ClaimKind, ComponentError
from vllm_ascend.plugins import GROUPS, collect
from vllm_ascend.plugins.groups import MOE, QUANTIZATION, SOC, SPEC_DECODE

REGISTER = "def register(context):\n    {}\n"


def test_every_component_of_the_workspace_loads() -> None:
    registry = collect()
    assert {it.distribution for it in registry.components} == {
        "ascend-310p",
        "ascend-moe",
        "ascend-quant",
        "ascend-specdecode",
    }
    assert all(it.loaded for it in registry.components)
    # The others have nothing to claim yet.
    assert {it.distribution for it in registry.components if it.claims} == {"ascend-moe"}
    balancer = registry.claim(ClaimKind.EXPERT_BALANCER, "eplb")
    assert balancer is not None
    assert balancer.path == "ascend_moe.vllm.balancer:EngineBalancer"
    assert registry.problems == ()


def test_claims_are_kept_by_kind_and_name(installer: Any) -> None:
    source = (
        "def register(context):\n"
        "    context.claim_layer('RMSNorm', 'my.layers:Norm')\n"
        "    context.claim_quant_method('my_int8', 'my.quant:Config')\n"
        "    context.claim_proposer('my_draft', 'my.spec:Proposer')\n"
        "    context.claim_op_provider('my_ops', 'my.ops')\n"
        "    context.claim_layer('RMSNorm', 'my.layers:Norm')\n"  # idempotent
    )
    installer.add("my-parts", {MOE.name: {"mine": "my_parts:register"}}, {"my_parts": source})
    registry = collect()
    assert registry.problems == ()
    claim = registry.claim(ClaimKind.LAYER, "RMSNorm")
    assert claim is not None
    assert (claim.path, claim.component, claim.distribution) == ("my.layers:Norm", "mine", "my-parts")
    assert registry.names(ClaimKind.QUANT_METHOD) == ("my_int8",)
    assert registry.names(ClaimKind.PROPOSER) == ("my_draft",)
    assert registry.names(ClaimKind.OP_PROVIDER) == ("my_ops",)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        pytest.param("import not_there_at_all\n", "No module named 'not_there_at_all'", id="import-fails"),
        pytest.param("def register(context:\n", "SyntaxError", id="syntax-error"),
        pytest.param("x = 1\n", "AttributeError", id="no-register"),
        pytest.param(REGISTER.format("raise OSError('disk is full')"), "OSError: disk is full", id="register-raises"),
        pytest.param(REGISTER.format("context.claim_layer('', 'a:B')"), "an empty name", id="empty-name"),
        pytest.param(REGISTER.format("context.claim_layer('RMSNorm', 'a.B')"), "'package.module:Class'", id="bad-path"),
        pytest.param(REGISTER.format("context.require_api(99)"), "needs vllm_ascend.api 99.0", id="other-api"),
        pytest.param(REGISTER.format("context.claim_soc(name='X')"), "group vllm_ascend.soc only", id="soc-elsewhere"),
    ],
)
def test_a_broken_component_is_named_with_its_distribution_and_reason(installer: Any, source: str, says: str) -> None:
    installer.add("my-broken", {MOE.name: {"mine": "my_broken:register"}}, {"my_broken": source})
    registry = collect()
    (problem,) = registry.problems
    assert (problem.component, problem.distribution) == ("mine", "my-broken 1.2.3")
    assert says in problem.why
    with pytest.raises(ComponentError, match=r"component 'mine' of my-broken 1\.2\.3: .*Repair or uninstall my-broken"):
        registry.raise_problems()
    assert {it.distribution for it in registry.claims.values()} == {"ascend-moe"}


def test_two_claimants_of_one_name_are_both_named(installer: Any) -> None:
    claim = REGISTER.format("context.claim_quant_method('w8a8', 'a.b:C')")
    installer.add("first-quant", {QUANTIZATION.name: {"one": "first_quant:register"}}, {"first_quant": claim})
    installer.add("second-quant", {QUANTIZATION.name: {"two": "second_quant:register"}}, {"second_quant": claim})
    (problem,) = collect().problems
    assert "the quant_method 'w8a8' is claimed twice, by first-quant and by second-quant" in str(problem)


def test_two_components_of_one_name_are_both_named(installer: Any) -> None:
    nothing = REGISTER.format("pass")
    installer.add("fork-of-moe", {MOE.name: {"moe": "fork_of_moe:register"}}, {"fork_of_moe": nothing})
    (problem,) = collect().problems
    assert (
        problem.why == "the component name 'moe' in vllm_ascend.moe is claimed twice, by ascend-moe and by fork-of-moe"
    )


def test_the_same_name_in_two_kinds_is_no_conflict(installer: Any) -> None:
    source = REGISTER.format("context.claim_layer('eagle', 'a:B'); context.claim_proposer('eagle', 'a:C')")
    installer.add("my-spec", {SPEC_DECODE.name: {"mine": "my_spec:register"}}, {"my_spec": source})
    assert collect().problems == ()


@pytest.mark.parametrize("group", GROUPS, ids=lambda it: it.extra)
def test_a_missing_component_names_its_distribution_and_how_to_install_it(group: object) -> None:
    registry = collect(points=lambda _: ())
    message = registry.missing(group, "this model")
    assert group.distribution in message
    assert f"pip install 'vllm-ascend[{group.extra}]'" in message


def test_an_installed_component_that_lacks_what_is_asked_for_is_named_with_its_version() -> None:
    message = collect().missing(MOE, "this model")
    assert "the installed component does not provide it: ascend-moe 0.1.0" in message


SOC_SOURCE = """
import torch

def register(context):
    context.claim_soc(
        name="310P",
        chip_names="Ascend310P.*",
        soc_versions=((200, 205),),
        dtypes=(torch.float16,),
        kernel_block_sizes=(128, 64),
        unified_buffer_bytes=1 << 18,
        graph_modes=frozenset({"NONE"}),
        layers={"RMSNorm": "my_soc:Norm"},
    )
"""


# In a process of its own: a process that has an NPU context asks the chip, which is another family's here.
COLLECT = """
from vllm_ascend.api import ClaimKind
from vllm_ascend.plugins import collect

registry = collect()
claim = registry.claim(ClaimKind.LAYER, "RMSNorm")
print(registry.problems, registry.soc.name, registry.soc.dtypes, claim.path, claim.distribution)
"""


def test_a_soc_family_arrives_by_entry_point_and_replaces_claims(
    installer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = REGISTER.format("context.claim_layer('RMSNorm', 'other:Norm' if context.soc.name == '310P' else 'no:No')")
    installer.add("my-soc", {SOC.name: {"my310p": "my_soc:register"}}, {"my_soc": SOC_SOURCE})
    installer.add("other-moe", {MOE.name: {"other": "other_moe:register"}}, {"other_moe": other})
    monkeypatch.setenv("VLLM_ASCEND_SOC", "310p")
    done = subprocess.run([sys.executable, "-c", COLLECT], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1:] == ["() 310P (torch.float16,) my_soc:Norm my-soc"], done.stderr


def test_an_incomplete_soc_profile_says_which_field_is_missing(installer: Any) -> None:
    source = REGISTER.format("context.claim_soc(name='X')")
    installer.add("half-soc", {SOC.name: {"half": "half_soc:register"}}, {"half_soc": source})
    (problem,) = collect().problems
    assert "the SoC profile is not complete" in problem.why
    assert "chip_names" in problem.why


def test_310p_without_its_distribution_is_a_problem_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_ASCEND_SOC", "310P")
    with pytest.raises(ComponentError, match=r"distribution ascend-310p .*vllm-ascend\[310p\]"):
        collect(points=lambda _: ()).raise_problems()


def test_the_platform_is_the_only_one_in_vllms_groups() -> None:
    ours = {
        group: [it.name for it in entry_points(group=group) if it.value.startswith("vllm_ascend.")]
        for group in ("vllm.platform_plugins", "vllm.general_plugins")
    }
    assert ours == {"vllm.platform_plugins": ["ascend"], "vllm.general_plugins": ["ascend"]}


def test_the_api_version_is_the_one_the_components_ask_for() -> None:
    assert API_VERSION == (1, 1)
