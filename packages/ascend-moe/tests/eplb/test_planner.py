"""A planning process that may die, hang or be given nonsense, and its caller."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ascend_moe.eplb import Problem, initial_placement
from ascend_moe.eplb.planner import PlannerDiedError, PlannerError, PlannerProcess, PlannerTimeoutError

PROBLEM = Problem(np.array([[900.0, 10, 10, 10]]), initial_placement(1, 4, 2, 2))


@pytest.fixture(scope="module")
def planner() -> Iterator[PlannerProcess]:
    with PlannerProcess("random", timeout=120) as made:
        yield made


def test_plans_come_from_another_process(planner: PlannerProcess) -> None:
    found = planner.plan(PROBLEM)
    assert found.placement.shape == (1, 2, 3)
    assert found.policy == "random"
    assert planner.pid not in (None, os.getpid())
    assert not planner.busy


def test_submitting_and_polling_do_not_wait(planner: PlannerProcess) -> None:
    planner.plan(PROBLEM)
    os.kill(planner.pid, signal.SIGSTOP)  # nothing can come, and nothing empties the pipe
    large = Problem(np.ones((60, 256)), initial_placement(60, 256, 32, 32))
    started = time.monotonic()
    planner.submit(large)
    assert planner.poll() is None
    assert time.monotonic() - started < 1
    assert planner.busy
    with pytest.raises(ValueError, match="busy"):
        planner.submit(PROBLEM)
    os.kill(planner.pid, signal.SIGCONT)
    assert planner.poll(60).placement.shape == (60, 32, 9)


def test_a_killed_planner_is_reported_once_and_replaced(planner: PlannerProcess) -> None:
    planner.plan(PROBLEM)
    starts = planner.starts
    os.kill(planner.pid, signal.SIGSTOP)
    planner.submit(PROBLEM)
    os.kill(planner.pid, signal.SIGKILL)
    with pytest.raises(PlannerDiedError, match=r"policy 'random' ended with signal 9; the placement stays"):
        planner.poll(60)
    assert not planner.busy
    with pytest.raises(ValueError, match="no problem is submitted"):
        planner.poll()
    assert planner.plan(PROBLEM).placement.shape == (1, 2, 3)
    assert planner.starts == starts + 1


def test_a_planner_killed_between_two_problems_is_noticed(planner: PlannerProcess) -> None:
    planner.plan(PROBLEM)
    os.kill(planner.pid, signal.SIGKILL)
    with pytest.raises(PlannerDiedError, match="signal 9"):
        planner.plan(PROBLEM)
    assert planner.plan(PROBLEM).placement.shape == (1, 2, 3)


def test_a_planner_that_takes_too_long_is_ended(planner: PlannerProcess) -> None:
    planner.plan(PROBLEM)
    pid = planner.pid
    os.kill(pid, signal.SIGSTOP)
    planner.timeout = 0.2
    planner.submit(PROBLEM)
    with pytest.raises(PlannerTimeoutError, match=r"policy 'random' had no plan after 0.2 s"):
        planner.poll(60)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    planner.timeout = 120
    assert planner.plan(PROBLEM).placement.shape == (1, 2, 3)


@pytest.mark.parametrize(
    ("policy", "options", "message"),
    [("greedy", {}, "no policy is called 'greedy'"), ("random", {"speed": 1}, "no option 'speed'")],
    ids=["name", "option"],
)
def test_a_policy_that_cannot_be_had_is_explained(policy: str, options: dict, message: str) -> None:
    with PlannerProcess(policy, options, timeout=120) as made, pytest.raises(PlannerError, match=message):
        made.plan(PROBLEM)


BROKEN = """
import os
from ascend_moe.eplb import Proposal

class Policy:
    def place(self, problem):
        if problem.layers == 1:  # the first problem of a new process
            return Proposal(problem.placement)
        if problem.layers == 2:
            return Proposal(problem.placement * 0)
        raise RuntimeError("out of order")
"""


def test_a_faulty_policy_leaves_the_placement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that answers nonsense is explained; one that fails ends its process, not its caller."""
    (tmp_path / "eplb_broken.py").write_text(BROKEN)
    info = tmp_path / "eplb_broken-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: eplb_broken\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[ascend_moe.eplb_policies]\nbroken = eplb_broken:Policy\n")
    monkeypatch.syspath_prepend(str(tmp_path))  # a spawned process takes over the path of its parent
    with PlannerProcess("broken", timeout=120) as made:
        two = Problem(np.ones((2, 4)), initial_placement(2, 4, 2, 2))
        with pytest.raises(PlannerError, match=r"'broken' failed; the placement stays\. .*layer 0, rank 0"):
            made.plan(two)
        three = Problem(np.ones((3, 4)), initial_placement(3, 4, 2, 2))
        with pytest.raises(PlannerDiedError, match="'broken' ended with exit code 1"):
            made.plan(three)


def test_nothing_submitted_and_no_time_are_refused() -> None:
    with pytest.raises(ValueError, match="timeout is 0"):
        PlannerProcess("random", timeout=0)
    with pytest.raises(ValueError, match="no problem is submitted"):
        PlannerProcess("random").poll()
