"""The best placement that a time budget allows, with a proven bound of what any placement could reach."""

from __future__ import annotations

import time

import numpy as np

from ascend_moe.eplb.arrays import Floats, Integers
from ascend_moe.eplb.kernels.alignment import settle
from ascend_moe.eplb.kernels.allotment import staged
from ascend_moe.eplb.kernels.bounds import lower_bound
from ascend_moe.eplb.kernels.descent import search, value_of
from ascend_moe.eplb.kernels.exact import optimum
from ascend_moe.eplb.problem import Problem, Proposal

STAGES = 4
WIDTH = 8
"""How far the search for the first replication goes, as in the policy ``flashlb``."""

LARGEST_EXACT = 40
"""Most physical experts of a layer that branch and bound is tried on; it never finishes on much larger ones."""


class OptimalPolicy:
    """Local search from a good replication towards a proven lower bound, and branch and bound for small layers.

    The bound is the larger of the mean rank load and a knapsack bound on slots (`kernels.bounds`); where branch and
    bound finishes, the placement is proven optimal and is its own bound. How far the search comes depends on the clock:
    plan on one rank and send the result to the others.

    Args:
        time_budget: seconds for all layers together; the first, short search of each layer is always made, and branch
            and bound, once begun, is ended by `nodes` and not by the clock.
        tolerance: a layer this close to its bound, relatively, is not searched further.
        nodes: steps of branch and bound per layer, about a second for the default; 0 turns it off.
        seed: of the local search.

    Raises:
        ValueError: a negative argument.
    """

    def __init__(
        self, *, time_budget: float = 1.0, tolerance: float = 1e-4, nodes: int = 1_000_000, seed: int = 0
    ) -> None:
        for name, value in {"time_budget": time_budget, "tolerance": tolerance, "nodes": nodes, "seed": seed}.items():
            if value < 0:
                raise ValueError(f"{name} is {value}; it is at least 0")
        self.time_budget = time_budget
        self.tolerance = tolerance
        self.nodes = nodes
        self.seed = seed

    def place(self, problem: Problem) -> Proposal:
        """Propose a placement of `problem`, with bounds."""
        end = time.monotonic() + self.time_budget
        layers = [layer for layer in range(problem.layers) if problem.loads[layer].any()]
        bound = np.zeros(problem.layers)
        best: dict[int, Integers] = {}
        for layer in layers:
            weight = problem.loads[layer]
            bound[layer] = lower_bound(weight, problem.ranks, problem.slots)
            best[layer] = self._first(problem, layer)
            self._search(problem, layer, best[layer], bound[layer], 4, 0)
        for number, layer in enumerate(layers):
            remaining = max(0.0, end - time.monotonic())
            until = time.monotonic() + remaining / (len(layers) - number)
            self._improve(problem, layer, best[layer], bound, until)
        placement = problem.placement.copy()
        for layer, place in best.items():
            before = problem.placement[layer]
            weight = problem.loads[layer][None]
            if value_of(place, weight) < value_of(before, weight) * (1 - 1e-12):
                placement[layer] = settle(place, before, problem.experts)
        return Proposal(placement, bound)

    def _first(self, problem: Problem, layer: int) -> Integers:
        """Return the placement of the best replication that a search in stages finds."""
        weight = problem.loads[layer]
        return staged(weight[None], weight, problem.ranks, problem.slots, 0.0, STAGES, WIDTH)

    def _search(self, problem: Problem, layer: int, place: Integers, bound: float, rounds: int, turn: int) -> float:
        """Search on from `place`, which is improved in place; return its largest rank load."""
        target = bound * (1 + self.tolerance)
        return search(place, problem.loads[layer][None], rounds, target, self.seed + turn)

    def _improve(self, problem: Problem, layer: int, place: Integers, bound: Floats, until: float) -> None:
        """Improve a layer until the bound is reached or proven to be out of reach, or the time is over."""
        value = self._search(problem, layer, place, bound[layer], 0, 0)
        if value <= bound[layer] * (1 + self.tolerance) or time.monotonic() >= until:
            return
        value = self._search(problem, layer, place, bound[layer], 32, 1)
        if self.nodes and place.size <= LARGEST_EXACT:
            weight = problem.loads[layer]
            value, proven = optimum(weight, problem.ranks, problem.slots, place, value, self.nodes)
            if proven:
                bound[layer] = value
        turn = 2
        while value > bound[layer] * (1 + self.tolerance) and time.monotonic() < until:
            value = self._search(problem, layer, place, bound[layer], 16, turn)
            turn += 1
