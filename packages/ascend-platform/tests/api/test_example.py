"""The example in the documentation of `vllm_ascend.api` works as it stands."""

from __future__ import annotations

import textwrap
from importlib.metadata import entry_points
from typing import Any

import vllm_ascend.api
from vllm_ascend.api import ClaimKind
from vllm_ascend.config import AscendConfig
from vllm_ascend.plugins import collect
from vllm_ascend.plugins.groups import MOE


def documented_example() -> str:
    """The indented block after the double colon."""
    assert vllm_ascend.api.__doc__ is not None
    lines = vllm_ascend.api.__doc__.split('``moe = "my_moe.vllm:register"``::\n')[1].splitlines()
    block = lines[: next(i for i, it in enumerate(lines) if it.startswith("``vllm serve"))]
    return textwrap.dedent("\n".join(block)).strip() + "\n"


def test_the_example_registers_and_reads_its_section(installer: Any) -> None:
    installer.add("my-moe", {MOE.name: {"mymoe": "my_moe_example:register"}}, {"my_moe_example": documented_example()})
    # As if ascend-moe, which claims the same layer, were not installed.
    registry = collect(points=lambda group: [it for it in entry_points(group=group) if it.name == "mymoe"])
    assert registry.problems == ()
    claim = registry.claim(ClaimKind.LAYER, "UnquantizedFusedMoEMethod")
    assert claim is not None
    assert claim.path == "my_moe.vllm.method:MyFusedMoEMethod"
    import my_moe_example

    config = AscendConfig.parse({"mymoe": {"chunk_tokens": 1024}}, registry)
    assert config.section("mymoe", my_moe_example.MoEConfig).chunk_tokens == 1024
