"""Every balancing policy beside DeepSeek's algorithm as the installed vLLM carries it, on published and drifting loads.

    .venv/bin/python packages/ascend-moe/benchmarks/eplb/run.py                               all loads
    .venv/bin/python packages/ascend-moe/benchmarks/eplb/run.py --layers 4 --intervals 2      a short look

Prints, per load and policy, largest over mean rank load (mean over layers and intervals, and the worst layer), the
experts that move per layer and interval, planning time per interval, and layers with an invalid placement (only vLLM's
can have any). vLLM's is asked for its global placement: one group, one node. Loads drift from interval to interval;
each policy goes on from its own placement.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from vllm.distributed.eplb.policy.default import DefaultEplbPolicy

from ascend_moe.eplb import InvalidPlacementError, Problem, initial_placement, load_policy, plan, policy_names
from ascend_moe.eplb.arrays import Floats, Integers
from ascend_moe.eplb.metrics import layer_imbalance
from ascend_moe.eplb.placement import checked_placement, moved

PEER = "vLLM (DeepSeek)"

# The example of DeepSeek's public EPLB README: 12 experts, 16 replicas, 2 nodes with 4 devices each.
README = np.array(
    [
        [90, 132, 40, 61, 104, 165, 39, 4, 73, 56, 183, 86],
        [20, 107, 104, 64, 19, 197, 187, 157, 172, 86, 16, 27],
    ],
    dtype=np.float64,
)


@dataclass(frozen=True)
class Load:
    """A series of loads, [intervals][layers, experts], on so many ranks."""

    name: str
    intervals: list[Floats]
    ranks: int
    redundant: int
    nodes: int


@dataclass
class Row:
    """What one policy did in one interval."""

    imbalance: Floats
    moves: float
    seconds: float
    invalid: int


def zipf(experts: int, layers: int, intervals: int, seed: int = 0) -> list[Floats]:
    """Zipf-distributed experts, whose logarithms drift as a random walk from interval to interval."""
    generator = np.random.default_rng(seed)
    logs = np.stack([generator.permutation(-1.1 * np.log(np.arange(1, experts + 1))) for _ in range(layers)])
    series = []
    for _ in range(intervals):
        shares = np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)
        series.append(generator.poisson(shares * 8 * 65536).astype(np.float64))
        logs = logs + generator.normal(0, 0.15, logs.shape)
    return series


def peer_step(loads: Floats, placement: Integers) -> tuple[Integers, float]:
    """One call of vLLM's policy, and its time."""
    layers, ranks, slots = placement.shape
    weight, before = torch.from_numpy(loads), torch.from_numpy(placement.reshape(layers, -1))
    started = time.perf_counter()
    answer = DefaultEplbPolicy.rebalance_experts(weight, ranks * slots, 1, 1, ranks, before)
    return np.asarray(answer).reshape(placement.shape), time.perf_counter() - started


def invalid_layers(placement: Integers, experts: int) -> int:
    """How many layers of a placement are invalid."""
    found = 0
    for layer in placement:
        try:
            checked_placement(layer[None], experts)
        except InvalidPlacementError:
            found += 1
    return found


def follow_peer(load: Load) -> list[Row]:
    """vLLM's policy through all intervals; from an invalid placement too, the next step goes on."""
    layers, experts = load.intervals[0].shape
    placement = initial_placement(layers, experts, load.ranks, load.redundant)
    rows = []
    for loads in load.intervals:
        after, seconds = peer_step(loads, placement)
        moves = moved(placement, after).sum() / layers
        rows.append(Row(layer_imbalance(after, loads), moves, seconds, invalid_layers(after, experts)))
        placement = after
    return rows


def follow(name: str, load: Load, options: dict[str, float]) -> list[Row]:
    """One of our policies through all intervals."""
    layers, experts = load.intervals[0].shape
    placement = initial_placement(layers, experts, load.ranks, load.redundant)
    policy = load_policy(name, **options)
    plan(policy, Problem(load.intervals[0], placement, load.nodes))  # compiled before anything is timed
    rows = []
    for loads in load.intervals:
        found = plan(policy, Problem(loads, placement, load.nodes), name)
        stats = found.statistics
        rows.append(Row(stats.imbalance_after, stats.moves.mean(), found.seconds, 0))
        placement = found.placement
    return rows


def report(load: Load, results: Mapping[str, Callable[[], list[Row]]]) -> None:
    layers, experts = load.intervals[0].shape
    print(f"\n{load.name}: {experts} + {load.redundant} experts, {load.ranks} ranks, {layers} layers")
    print(f"{'policy':18s}{'max/mean':>10s}{'worst':>9s}{'moves':>9s}{'time ms':>10s}{'invalid':>9s}")
    start = initial_placement(layers, experts, load.ranks, load.redundant)
    kept = np.stack([layer_imbalance(start, loads) for loads in load.intervals])
    print(f"{'(no balancing)':18s}{kept.mean():10.4f}{kept.max():9.3f}{0:9.1f}")
    for name, run in results.items():
        rows = run()
        ratios = np.stack([row.imbalance for row in rows])
        print(
            f"{name:18s}{ratios.mean():10.4f}{ratios.max():9.3f}{np.mean([row.moves for row in rows]):9.1f}"
            f"{1e3 * np.mean([row.seconds for row in rows]):10.1f}{sum(row.invalid for row in rows):9d}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--layers", type=int, default=58)
    parser.add_argument("--intervals", type=int, default=3)
    parser.add_argument("--budget", type=float, default=5.0, help="seconds that the policy `optimal` has for a plan")
    arguments = parser.parse_args()
    loads = [
        Load("README example", [README], 8, 4, 2),
        Load("drifting Zipf", zipf(256, arguments.layers, arguments.intervals), 32, 32, 4),
        Load("drifting Zipf", zipf(128, arguments.layers, arguments.intervals, 1), 16, 16, 2),
    ]
    for load in loads:
        results = {PEER: partial(follow_peer, load)}
        for name in policy_names():
            options = {"time_budget": arguments.budget} if name == "optimal" else {}
            results[name] = partial(follow, name, load, options)
        report(load, results)


if __name__ == "__main__":
    main()
