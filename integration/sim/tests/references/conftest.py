# SPDX-License-Identifier: Apache-2.0
"""The references on the CPU key, called with CPU tensors; no device takes part."""

from __future__ import annotations

import pytest
import torch
import torch_npu  # noqa: F401  defines the schemas

from ascend_sim.references import register_all


@pytest.fixture(scope="session", autouse=True)
def _registered() -> None:
    register_all()


@pytest.fixture(autouse=True)
def _seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ASCEND_SIM_ORACLE_FP32", raising=False)
    torch.manual_seed(0)
