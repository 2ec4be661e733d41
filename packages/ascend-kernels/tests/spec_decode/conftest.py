"""Plans for small blocks: the interpreter takes a second for the maximum of a block as an NPU has them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ascend_kernels.target import ASCEND_910B1
from ascend_kernels.testing import TRITON_PLANS


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """An NPU with little memory on chip and two cores: short rows have several blocks, and programs several rows."""
    if TRITON_PLANS:
        monkeypatch.setitem(TRITON_PLANS, "ascend", replace(ASCEND_910B1, unified_buffer=4096, vector_cores=2))
