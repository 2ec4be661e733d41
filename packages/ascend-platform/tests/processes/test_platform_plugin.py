"""The platform callable answers whatever is missing, and never raises."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

ASK = """
import os
from vllm_ascend.plugins.vllm_hooks import platform_plugin
print("ANSWER", platform_plugin(), os.environ.get("VLLM_WORKER_MULTIPROC_METHOD"))
"""


def ask(python: str) -> subprocess.CompletedProcess[str]:
    """What the callable answers in an environment."""
    return subprocess.run([python, "-c", ASK], capture_output=True, text=True, check=False)


def test_with_torch_npu_it_names_the_platform_and_the_start_method(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VLLM_WORKER_MULTIPROC_METHOD", raising=False)
    done = ask(sys.executable)
    assert "ANSWER vllm_ascend.platform.AscendPlatform spawn" in done.stdout, done.stderr


def test_without_torch_npu_there_is_no_platform_and_a_reason(
    environment_without: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VLLM_WORKER_MULTIPROC_METHOD", raising=False)
    done = ask(environment_without("torch-npu"))
    assert "ANSWER None None" in done.stdout, done.stderr
    assert "pip install 'vllm-ascend[npu]'" in done.stderr


@pytest.mark.parametrize("missing", ["vllm", "triton-ascend"])
def test_without_vllm_or_triton_the_package_is_importable(
    environment_without: Callable[[str], str], missing: str
) -> None:
    script = (
        "import vllm_ascend, vllm_ascend.api, vllm_ascend.cli, vllm_ascend.plugins, vllm_ascend.soc; print('ANSWER')"
    )
    done = subprocess.run([environment_without(missing), "-c", script], capture_output=True, text=True, check=False)
    assert "ANSWER" in done.stdout, done.stderr
