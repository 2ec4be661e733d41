# SPDX-License-Identifier: Apache-2.0
"""The references called with CPU tensors, which only these tests may; no device takes part."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
import torch_npu  # noqa: F401  defines the schemas

from ascend_sim.references import register_all, registered_on_cpu


@pytest.fixture(scope="module", autouse=True)
def _registered() -> Iterator[None]:
    register_all()
    with registered_on_cpu():
        yield


@pytest.fixture(autouse=True)
def _seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ASCEND_SIM_ORACLE_FP32", raising=False)
    torch.manual_seed(0)
