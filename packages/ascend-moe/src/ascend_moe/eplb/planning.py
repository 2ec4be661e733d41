"""From a policy's name to a checked plan."""

from __future__ import annotations

import inspect
import time
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import numpy as np

from ascend_moe.eplb.problem import Plan, Policy, Problem, statistics
from ascend_moe.eplb.validity import check

GROUP = "ascend_moe.eplb_policies"
"""Entry points of this group name policy classes."""


class PolicyError(ValueError):
    """A policy that is not there, is there twice, or does not take the options given."""


def policy_names() -> tuple[str, ...]:
    """Return the names of the policies that installed distributions provide, sorted."""
    return tuple(sorted({point.name for point in entry_points(group=GROUP)}))


def _entry_point(name: str) -> EntryPoint:
    found = {point.value: point for point in entry_points(group=GROUP, name=name)}
    if not found:
        raise PolicyError(f"no policy is called {name!r}; there are {', '.join(policy_names()) or 'none'}")
    if len(found) > 1:
        raise PolicyError(f"several distributions provide the policy {name!r}: {', '.join(sorted(found))}")
    return next(iter(found.values()))


def load_policy(name: str, **options: Any) -> Policy:
    """Return the policy `name` with `options`, the keyword arguments of its class.

    Raises:
        PolicyError: an unknown name, a name that two distributions provide, an unknown option, or a class without
            `place`.
    """
    policy_class = _entry_point(name).load()
    known = inspect.signature(policy_class).parameters
    if unknown := sorted(set(options) - set(known)):
        raise PolicyError(
            f"the policy {name!r} has no option {unknown[0]!r}; it has {', '.join(sorted(known)) or 'none'}"
        )
    policy = policy_class(**options)
    if not isinstance(policy, Policy):
        raise PolicyError(f"the policy {name!r} is {policy_class!r}, which has no method `place`")
    return policy


def plan(policy: Policy, problem: Problem, name: str | None = None) -> Plan:
    """Ask `policy` and check its answer.

    Raises:
        InvalidPlacementError: the policy proposes what no rank may load; the present placement then stays.
    """
    started = time.perf_counter()
    proposal = policy.place(problem)
    seconds = time.perf_counter() - started
    moves = check(proposal.placement, problem.placement, problem.experts)
    stats = statistics(problem, proposal, moves)
    gain = stats.imbalance_before - stats.imbalance_after
    changing = np.flatnonzero((proposal.placement != problem.placement).any(axis=(1, 2)))
    order = tuple(int(layer) for layer in changing[np.argsort(-gain[changing], kind="stable")])
    return Plan(proposal.placement, stats, name or type(policy).__name__, seconds, order)
