"""Targets: which one applies, and how it is overridden."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch

from ascend_kernels.target import ASCEND_910_9392, ASCEND_910B1, cuda_target, current_target, use_target


def test_an_override_holds_inside_its_block_only() -> None:
    with use_target(ASCEND_910B1):
        with use_target(cuda_target(7)):
            assert current_target(torch.device("meta")).vector_cores == 7
        assert current_target(torch.device("cuda", 3)) is ASCEND_910B1


def test_a_device_without_plans_is_refused_with_the_way_out() -> None:
    with pytest.raises(ValueError, match="'meta' device.*ASCEND_KERNELS_TARGET to one of ascend910b1, ascend910_9392"):
        current_target(torch.device("meta"))


def test_buffers_are_those_of_the_compilers_target_description() -> None:
    for target in (ASCEND_910B1, ASCEND_910_9392):
        assert target.unified_buffer * 8 == 1_572_864
        assert target.l0c * 8 == 1_048_576
        assert (target.cube_cores, target.vector_cores) == (24, 48)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("ascend910_9392", "ascend910_9392"), ("h200", "'h200': one of ascend910b1, ascend910_9392 is allowed")],
)
def test_the_environment_names_a_target(name: str, expected: str) -> None:
    program = "import torch; from ascend_kernels.target import *; print(current_target(torch.device('cpu')).name)"
    environment = {**os.environ, "ASCEND_KERNELS_TARGET": name, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    assert expected in done.stdout + done.stderr
