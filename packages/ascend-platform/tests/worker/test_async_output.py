"""Samples on their way to the host."""

from __future__ import annotations

import pytest
import torch
from vllm.v1.outputs import EMPTY_MODEL_RUNNER_OUTPUT, LogprobsTensors

from ascend_sim import instruments
from vllm_ascend.worker.async_output import AscendAsyncOutput, hold_until_copied

REQUESTS = 1024


def start_and_drop(copy_stream: torch.npu.Stream, hold: bool) -> None:
    """Begin the copy of made-up samples as a rank does whose output nobody receives."""
    sampled = torch.ones(REQUESTS, 1, dtype=torch.int32, device="npu")
    logprobs = LogprobsTensors(sampled + 1, sampled / 2, sampled[:, 0] + 3)
    output = AscendAsyncOutput(EMPTY_MODEL_RUNNER_OUTPUT, sampled, logprobs, [], copy_stream, torch.npu.Event(), 100)
    if hold:
        hold_until_copied(output, copy_stream)


def use_memory_again() -> list[torch.Tensor]:
    return [torch.zeros(REQUESTS, 1, dtype=torch.int32, device="npu") for _ in range(4)]


def test_memory_of_a_dropped_output_waits_for_its_copies() -> None:
    with instruments.check_order():
        start_and_drop(torch.npu.Stream(), hold=True)
        use_memory_again()


def test_the_check_sees_memory_that_does_not_wait() -> None:
    with instruments.check_order():
        start_and_drop(torch.npu.Stream(), hold=False)
        with pytest.raises(RuntimeError, match=r"aten::copy_ on .* reads .*record_stream"):
            use_memory_again()
