"""Claims reach vLLM's registries, each name once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from vllm_ascend.api import ClaimError, ComponentError
from vllm_ascend.plugins import commit_layers
from vllm_ascend.plugins.groups import MOE
from vllm_ascend.plugins.vllm_hooks import general_plugin

CLAIM = "def register(context):\n    context.claim_layer({name!r}, {path!r})\n"
LAYERS = """
from vllm.model_executor.custom_op import PluggableLayer
from vllm.model_executor.layers.activation import SiluAndMul

class MySiluAndMul(SiluAndMul):
    pass

class MyLayer(PluggableLayer):
    pass

class NoLayer:
    pass
"""


@pytest.fixture
def slots(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, type]]:
    """vLLM's out-of-tree slots, empty, and as they were afterwards."""
    from vllm.model_executor.custom_op import op_registry_oot

    before = dict(op_registry_oot)
    op_registry_oot.clear()
    yield op_registry_oot
    op_registry_oot.clear()
    op_registry_oot.update(before)


def test_our_own_layers_fill_their_slots_once(make_config: Any, slots: dict[str, type]) -> None:
    commit_layers(make_config())
    first = dict(slots)
    assert first["RMSNorm"].__module__ == "vllm_ascend.ops.layernorm"
    commit_layers(make_config())
    assert slots == first


@pytest.mark.parametrize(("name", "layer"), [("SiluAndMul", "MySiluAndMul"), ("FusedMoE", "MyLayer")])
def test_a_claimed_layer_takes_its_slot(
    installer: Any, make_config: Any, slots: dict[str, type], name: str, layer: str
) -> None:
    modules = {"claims_layer": CLAIM.format(name=name, path=f"layers_of_test:{layer}"), "layers_of_test": LAYERS}
    installer.add("my-layers", {MOE.name: {"mine": "claims_layer:register"}}, modules)
    config = make_config()
    commit_layers(config)
    commit_layers(config)
    assert f"{slots[name].__module__}:{slots[name].__name__}" == f"layers_of_test:{layer}"


@pytest.mark.parametrize(
    ("path", "error", "says"),
    [
        ("layers_of_test:Gone", ComponentError, "my-layers claims the layer 'SiluAndMul', but .* cannot be loaded"),
        ("not_there_at_all:X", ComponentError, "No module named 'not_there_at_all'"),
        ("layers_of_test:NoLayer", ClaimError, "neither a CustomOp nor a PluggableLayer"),
    ],
    ids=["no-such-class", "no-such-module", "no-layer"],
)
@pytest.mark.usefixtures("slots")
def test_a_claim_that_cannot_be_kept_names_its_distribution(
    installer: Any, make_config: Any, path: str, error: type[Exception], says: str
) -> None:
    modules = {"claims_layer": CLAIM.format(name="SiluAndMul", path=path), "layers_of_test": LAYERS}
    installer.add("my-layers", {MOE.name: {"mine": "claims_layer:register"}}, modules)
    with pytest.raises(error, match=says):
        commit_layers(make_config())


def test_a_slot_that_somebody_else_took_is_named(installer: Any, make_config: Any, slots: dict[str, type]) -> None:
    modules = {"claims_layer": CLAIM.format(name="SiluAndMul", path="layers_of_test:MySiluAndMul")}
    installer.add("my-layers", {MOE.name: {"mine": "claims_layer:register"}}, {**modules, "layers_of_test": LAYERS})
    slots["SiluAndMul"] = Foreign
    with pytest.raises(ComponentError, match=r"slot in vLLM is taken by .*:Foreign; uninstall one of the two"):
        commit_layers(make_config())


class Foreign:
    """Somebody else's layer."""


@pytest.mark.usefixtures("slots")
def test_the_general_plugin_runs_any_number_of_times_and_registers_no_layer(slots: dict[str, type]) -> None:
    general_plugin()
    general_plugin()
    assert slots == {}
