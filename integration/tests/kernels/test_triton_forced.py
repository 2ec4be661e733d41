"""Serving with Triton kernels, interpreted: transformers' tokens; and what is launched is lowered too."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from ascend_integration.checkpoints.tiny import TINY_MODELS
from ascend_integration.oracle import Reference
from ascend_kernels.calls import Call, launches_of, read_call_log
from ascend_kernels.library import OPERATORS
from ascend_kernels.lowering.signature import signature_of
from ascend_kernels.target import ASCEND_910B1

PROMPTS = [[17, 300, 41], [5 + 7 * i % 400 for i in range(17)]]
TOKENS = 6


@dataclass(frozen=True)
class Run:
    """What the process with Triton's kernels did, and transformers' continuations."""

    answers: dict[str, list[list[int]]]
    capture: str
    calls: list[tuple[str, Call]]
    expected: list[list[int]]


@pytest.fixture(scope="module")
def forced(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = TINY_MODELS["llama"].save(tmp_path_factory.mktemp("models") / "llama")
    log = tmp_path_factory.mktemp("log") / "calls.jsonl"
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("forced.py")), json.dumps([str(folder), PROMPTS, TOKENS])],
        env=os.environ
        | {
            "TRITON_INTERPRET": "1",
            "ASCEND_KERNELS_BACKEND": "triton",
            "ASCEND_KERNELS_TARGET": ASCEND_910B1.name,
            "ASCEND_KERNELS_CALL_LOG": str(log),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    result = json.loads(done.stdout.splitlines()[-1])
    reference = Reference.load(folder)
    expected = [reference.greedy(prompt, TOKENS).tokens for prompt in PROMPTS]
    return Run(result["answers"], result["capture"], read_call_log(log), expected)


def keys(calls: Iterable[tuple[str, Call]]) -> dict[str, str]:
    """Which specialisations calls launch on an NPU, with the operator that does."""
    return {
        signature_of(launch).key(launch.kernel): operator
        for operator, call in calls
        for launch in launches_of(OPERATORS[operator].triton(), call, ASCEND_910B1)
    }


@pytest.mark.parametrize("graphs", ["NONE", "FULL_DECODE_ONLY"])
def test_tokens_are_those_of_transformers(forced: Run, graphs: str) -> None:
    assert forced.answers[graphs] == forced.expected


def test_a_launch_that_a_capture_does_not_record_raises(forced: Run) -> None:
    assert "not permitted while the stream is capturing" in forced.capture


def test_what_serving_launches_is_among_what_is_lowered(forced: Run) -> None:
    operators = {operator for operator, _ in forced.calls}
    assert {"slot_mapping", "decode_inputs", "rms_norm"} <= operators
    lowered = keys((operator, call) for operator in operators for call in OPERATORS[operator].calls())
    # The capture's norm has a size that no model has.
    launched = keys((operator, call) for operator, call in forced.calls if operator != "rms_norm")
    assert {operator for key, operator in launched.items() if key not in lowered} == set()
