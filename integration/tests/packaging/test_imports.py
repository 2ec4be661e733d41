"""The wheels, installed from files beside their hard requirements alone, import, and do not reach for more."""

import json
from pathlib import Path

import pytest

from ascend_integration.packaging import Environment
from ascend_integration.packaging.environments import closure

LOADED = """
import importlib, json, sys
importlib.import_module(sys.argv[1])
tops = {name.partition(".")[0] for name in sys.modules}
print(json.dumps(sorted(tops & {"ascend_kernels", "torch", "torch_npu", "triton", "vllm", "vllm_ascend"})))
"""


@pytest.fixture(scope="module")
def torch_only(tmp_path_factory: pytest.TempPathFactory, wheels: dict[str, Path]) -> Environment:
    """torch, and of ours the operators."""
    made = Environment.create(tmp_path_factory.mktemp("torch") / "venv", closure(["torch"]), pip=False)
    made.install([wheels["ascend-kernels"]])
    return made


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory, wheels: dict[str, Path]) -> Environment:
    """What the components require, and neither vLLM nor torch_npu nor Triton."""
    seed = closure(["torch", "numba", "numpy", "pydantic"])
    made = Environment.create(tmp_path_factory.mktemp("core") / "venv", seed, pip=False)
    components = ("ascend-moe", "ascend-quant", "ascend-specdecode", "ascend-310p")
    made.install([wheels["ascend-kernels"], *(wheels[name] for name in components)])
    return made


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory, wheels: dict[str, Path]) -> Environment:
    """What vllm-ascend requires, and neither vLLM nor torch_npu nor Triton."""
    seed = closure(["torch", "numpy", "packaging", "pydantic", "rich", "typer"])
    made = Environment.create(tmp_path_factory.mktemp("platform") / "venv", seed, pip=False)
    made.install([wheels["vllm-ascend"], wheels["ascend-kernels"]])
    return made


def loaded(environment: Environment, module: str) -> list[str]:
    # torch itself warns where numpy, which it does not require, is missing.
    warnings = ("-W", "error", "-W", "ignore:Failed to initialize NumPy")
    result = environment.run(environment.python, *warnings, "-c", LOADED, module)
    assert result.returncode == 0, result.stdout
    found: list[str] = json.loads(result.stdout.splitlines()[-1])
    return found


def test_operators_import_with_torch_alone(torch_only: Environment) -> None:
    assert loaded(torch_only, "ascend_kernels") == ["ascend_kernels", "torch"]


@pytest.mark.parametrize("module", ["ascend_moe", "ascend_quant", "ascend_specdecode", "ascend_310p"])
@pytest.mark.parametrize("part", ["", ".vllm"], ids=["core", "binding"])
def test_component_imports_without_vllm_and_platform(core: Environment, module: str, part: str) -> None:
    assert set(loaded(core, module + part)) <= {"ascend_kernels", "torch"}


def test_expert_load_balancing_needs_no_torch(core: Environment) -> None:
    assert loaded(core, "ascend_moe.eplb.planner") == []


@pytest.mark.parametrize(
    "module", ["vllm_ascend", "vllm_ascend.api", "vllm_ascend.plugins.vllm_hooks", "vllm_ascend.cli"]
)
def test_platform_imports_without_vllm_and_torch_npu(platform: Environment, module: str) -> None:
    assert "vllm_ascend" in loaded(platform, module)


def test_requirements_hold_where_only_they_are_installed(
    torch_only: Environment, core: Environment, platform: Environment
) -> None:
    for environment in (torch_only, core, platform):
        result = environment.run("uv", "pip", "check", "--python", environment.python)
        assert result.returncode == 0, result.stdout
