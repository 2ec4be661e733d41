"""Random balancing problems of every kind of load, and an exact solver that knows nothing of the policies."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from ascend_moe.eplb import Problem, initial_placement
from ascend_moe.eplb.arrays import Floats, Integers

KINDS = ("uniform", "integers", "zipf", "lognormal", "one-hot", "zero", "single-expert-pair")


def draw(generator: np.random.Generator, kind: str, experts: int) -> Floats:
    """Loads of one layer."""
    loads = np.zeros(experts)
    match kind:
        case "uniform":
            return generator.uniform(0, 100, experts)
        case "integers":
            return generator.integers(0, 1000, experts).astype(np.float64)
        case "zipf":
            return generator.permutation(1000 / np.arange(1, experts + 1) ** generator.uniform(0.5, 1.5))
        case "lognormal":
            return generator.lognormal(0, 2, experts)
        case "one-hot":
            loads[generator.integers(experts)] = 1e6
        case "single-expert-pair":
            loads[generator.permutation(experts)[:2]] = 5, 3
    return loads


Draw = Callable[..., Problem]


@pytest.fixture
def draw_problem() -> Draw:
    """A function that makes a problem of many layers, each of another kind of load, with a random valid placement."""

    def make(
        shape: tuple[int, int, int], layers: int, seed: int, kinds: tuple[str, ...] = KINDS, nodes: int = 1
    ) -> Problem:
        experts, ranks, redundant = shape
        generator = np.random.default_rng(seed)
        loads = np.stack([draw(generator, kinds[layer % len(kinds)], experts) for layer in range(layers)])
        # A placement that is not in order of the experts: their numbers shuffled, layer by layer.
        names = np.stack([generator.permutation(experts) for _ in range(layers)])
        placement = initial_placement(layers, experts, ranks, redundant)
        placement = np.take_along_axis(names, placement.reshape(layers, -1), axis=1).reshape(placement.shape)
        return Problem(loads, placement, nodes)

    return make


@pytest.fixture
def exact_optimum() -> Callable[[Floats, int, int], float]:
    """A function that tries every valid placement of a small layer and returns the smallest largest rank load."""

    def solve(weight: Floats, ranks: int, slots: int) -> float:
        experts = len(weight)
        held = list(itertools.combinations(range(experts), slots))
        sets = np.array([[expert in one for expert in range(experts)] for one in held])
        chosen = np.array(list(itertools.combinations_with_replacement(range(len(sets)), ranks)))
        count = sets[chosen].sum(axis=1)
        chosen, count = chosen[(count > 0).all(axis=1)], count[(count > 0).all(axis=1)]
        unit = weight / count
        return float(np.einsum("nre,ne->nr", sets[chosen].astype(float), unit).max(axis=1).min())

    return solve


@pytest.fixture
def rank_loads() -> Callable[[Integers, Floats], Floats]:
    """A function that adds up the load of every rank, one slot after the other."""

    def add(placement: Integers, loads: Floats) -> Floats:
        result = np.zeros(placement.shape[:2])
        for layer, rank, slot in np.ndindex(placement.shape):
            expert = placement[layer, rank, slot]
            result[layer, rank] += loads[layer, expert] / (placement[layer] == expert).sum()
        return result

    return add
