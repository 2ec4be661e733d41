"""Policies by name, and a judge that lets no invalid placement through."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from ascend_moe.eplb import (
    InvalidPlacementError,
    PolicyError,
    Problem,
    Proposal,
    initial_placement,
    load_policy,
    plan,
    policy_names,
)


def test_policies_of_this_distribution() -> None:
    assert set(policy_names()) >= {"default", "flashlb", "optimal", "random", "swift_balancer"}


def test_unknown_names_and_options_are_refused_with_what_there_is() -> None:
    with pytest.raises(PolicyError, match=r"no policy is called 'greedy'; there are default, flashlb, optimal"):
        load_policy("greedy")
    with pytest.raises(PolicyError, match=r"'random' has no option 'speed'; it has seed"):
        load_policy("random", speed=3)


def add_distribution(folder: Path, name: str, point: str, source: str) -> None:
    """Install a distribution with one policy."""
    (folder / f"{name}.py").write_text(source)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[ascend_moe.eplb_policies]\n{point} = {name}:Policy\n")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_a_policy_of_another_distribution_is_found(folder: Path) -> None:
    source = "class Policy:\n    def place(self, problem):\n        return problem\n"
    add_distribution(folder, "eplb_fork_one", "forked", source)
    assert type(load_policy("forked")).__module__ == "eplb_fork_one"
    sys.modules.pop("eplb_fork_one")


def test_two_distributions_with_one_name_are_refused(folder: Path) -> None:
    add_distribution(folder, "eplb_fork_two", "forked", "")
    add_distribution(folder, "eplb_fork_three", "forked", "")
    with pytest.raises(PolicyError, match=r"provide the policy 'forked': eplb_fork_three:Policy, eplb_fork_two:Policy"):
        load_policy("forked")


def test_a_class_that_is_no_policy_is_refused(folder: Path) -> None:
    add_distribution(folder, "eplb_fork_four", "empty", "class Policy:\n    pass\n")
    with pytest.raises(PolicyError, match="has no method `place`"):
        load_policy("empty")
    sys.modules.pop("eplb_fork_four")


class Unfinished:
    """A search that gives up and leaves a slot open."""

    def place(self, problem: Problem) -> Proposal:
        placement = problem.placement.copy()
        placement[0, 1, 1] = -1
        return Proposal(placement)


def test_an_unfinished_placement_is_not_used() -> None:
    problem = Problem(np.array([[4.0, 3, 2, 1]]), initial_placement(1, 4, 2))
    with pytest.raises(InvalidPlacementError, match="layer 0, rank 1, slot 1 holds expert -1"):
        plan(Unfinished(), problem)
    assert problem.placement.tolist() == [[[0, 1], [2, 3]]]


@pytest.mark.parametrize("name", ["default", "flashlb", "optimal", "swift_balancer"])
def test_three_intervals_of_skewed_load_change_the_map(name: str) -> None:
    """A policy that is loaded but never applied would leave the count at zero."""
    policy, placement, changes = load_policy(name), initial_placement(1, 8, 4, 4), []
    for hot in (0, 3, 5):
        loads = np.full((1, 8), 10.0)
        loads[0, hot] = 900
        found = plan(policy, Problem(loads, placement), name)
        changes.append(len(found.order))
        assert found.policy == name
        placement = found.placement
    assert changes == [1, 1, 1]
