"""Calls without data: the log of a process, and the launches that follow from a call."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from ascend_kernels.calls import launches_of, read_call_log, write_call
from ascend_kernels.library import OPERATORS
from ascend_kernels.target import ASCEND_910B1


def test_a_logged_call_is_read_back(tmp_path: Path) -> None:
    tensor = torch.empty(6, 8, dtype=torch.bfloat16)[:, ::2]
    line = write_call("anything", (tensor, None, 1e-6, True, [1, 2], torch.int8))
    log = tmp_path / "calls.jsonl"
    log.write_text(f"{line}\n{line}\n")
    [(operator, call)] = read_call_log(log)
    assert operator == "anything"
    restored, *rest = call.arguments
    assert rest == [None, 1e-6, True, [1, 2], torch.int8]
    assert (restored.shape, restored.stride(), restored.dtype, restored.device.type) == (
        (6, 4),
        (8, 2),
        torch.bfloat16,
        "meta",
    )


def test_a_line_that_is_no_call_is_named(tmp_path: Path) -> None:
    log = tmp_path / "calls.jsonl"
    log.write_text('{"operator": "x"}\n')
    with pytest.raises(ValueError, match="distinct line 1: not a line of a call log"):
        read_call_log(log)


PROGRAM = """
import torch, ascend_kernels
arguments = lambda rows: (
    torch.tensor([0, rows], dtype=torch.int32, device="meta"), torch.zeros(rows, dtype=torch.int64, device="meta"),
    torch.zeros(1, 4, dtype=torch.int32, device="meta"), 16, torch.zeros(rows, dtype=torch.int32, device="meta"), -1,
)
from ascend_kernels.calls import logging_calls
logged = logging_calls("slot_mapping", lambda *_: None)
for rows in (3, 3, 5):
    logged(*arguments(rows))
"""


def test_every_distinct_call_of_a_process_is_logged_once(tmp_path: Path) -> None:
    log = tmp_path / "calls.jsonl"
    environment = {**os.environ, "ASCEND_KERNELS_CALL_LOG": str(log), "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    subprocess.run([sys.executable, "-W", "ignore", "-c", PROGRAM], env=environment, check=True)
    calls = read_call_log(log)
    assert [(name, call.arguments[1].shape[0]) for name, call in calls] == [("slot_mapping", 3), ("slot_mapping", 5)]


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_every_operator_declares_calls_with_launches(name: str) -> None:
    pytest.importorskip("triton", reason="launches are those of the Triton kernels")
    operator = OPERATORS[name]
    calls = list(operator.calls())
    labels = [call.label for call in calls]
    assert calls
    assert len(set(labels)) == len(labels)
    for call in calls:
        assert launches_of(operator.triton(), call, ASCEND_910B1), call.label
