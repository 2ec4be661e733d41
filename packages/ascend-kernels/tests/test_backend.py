"""Which implementation runs: the environment variable, in a process of its own because it is read once."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import torch, ascend_kernels
from ascend_kernels.backend import selected_backend
has = lambda key: torch._C._dispatch_has_kernel_for_dispatch_key("ascend_kernels::slot_mapping", key)
print(selected_backend(), has("CPU"), has("PrivateUse1"), has("CompositeExplicitAutograd"))
"""


def run(backend: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "ASCEND_KERNELS_BACKEND": backend, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    environment.pop("TRITON_INTERPRET", None)
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("backend", "registered"),
    [("naive", "naive True False True"), ("triton", "triton True True False")],
    ids=["naive", "triton"],
)
def test_device_kernels_follow_the_variable(backend: str, registered: str) -> None:
    if backend == "triton":
        pytest.importorskip("triton", reason="the Triton kernels need a Triton")
    done = run(backend)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().splitlines()[-1] == registered


def test_unknown_backend_names_the_allowed_ones() -> None:
    done = run("cuda")
    assert done.returncode != 0
    assert "ASCEND_KERNELS_BACKEND='cuda': one of auto, triton, naive is allowed" in done.stderr
