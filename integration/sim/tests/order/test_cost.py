"""What the check costs an operator."""

import time
from collections.abc import Callable

import torch

from ascend_sim import instruments

CALLS, ROUNDS = 1000, 5
MOST_US = 60  # what the check may add; about ten times what it does on an idle machine


def _microseconds(call: Callable[[], object]) -> float:
    """Of the best of some rounds: another process may take the core for a while."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        best = min(best, time.perf_counter() - start)
    return best / CALLS * 1e6


def test_the_check_adds_microseconds(report: Callable[..., None]) -> None:
    x, y, z = (torch.ones(8, 64, device="npu") for _ in range(3))
    for name, call in {"add": lambda: torch.add(x, y), "add, out": lambda: torch.add(x, y, out=z)}.items():
        off = _microseconds(call)
        with instruments.check_order():
            checked = _microseconds(call)
        report("Stream order: µs per operator, 8x64 float32", operator=name, off=f"{off:.1f}", check=f"{checked:.1f}")
        assert checked - off < MOST_US
