"""`VLLM_PLUGINS` and the plugins it leaves out."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from vllm.plugins import load_plugins_by_group

from vllm_ascend.plugins.dropped import dropped_plugins, warn_about_dropped_plugins
from vllm_ascend.plugins.groups import MOE

MODULE = "def register(context):\n    pass\n\ndef patch():\n    pass\n"


@pytest.fixture
def component_with_general_plugin(installer: Any) -> None:
    points = {MOE.name: {"mine": "own_plugin:register"}, "vllm.general_plugins": {"own_plugin": "own_plugin:patch"}}
    installer.add("own-plugin", points, {"own_plugin": MODULE})


def test_the_name_ascend_keeps_both_of_our_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_PLUGINS", "ascend")
    assert set(load_plugins_by_group("vllm.platform_plugins")) == {"ascend"}
    assert "ascend" in load_plugins_by_group("vllm.general_plugins")
    assert dropped_plugins() == {}


@pytest.mark.usefixtures("component_with_general_plugin")
def test_a_components_own_general_plugin_that_is_left_out_is_named(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("VLLM_PLUGINS", "ascend")
    assert "own_plugin" not in load_plugins_by_group("vllm.general_plugins")
    assert dropped_plugins() == {"own_plugin": "own-plugin"}
    monkeypatch.setattr(logging.getLogger("vllm"), "propagate", True)  # vLLM's own handlers do not reach caplog
    warn_about_dropped_plugins()
    assert "VLLM_PLUGINS leaves out the general plugin 'own_plugin' of own-plugin" in caplog.text


@pytest.mark.usefixtures("component_with_general_plugin")
@pytest.mark.parametrize("value", [None, "ascend,own_plugin"], ids=["unset", "both-named"])
def test_nothing_is_left_out(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    monkeypatch.delenv("VLLM_PLUGINS", raising=False)
    if value is not None:
        monkeypatch.setenv("VLLM_PLUGINS", value)
    assert dropped_plugins() == {}
