"""DeepSeek-V3's layers in vLLM's class on four simulated NPUs, against the dense layer in float64.

One start of four processes serves all tests: layer by layer, and layers whose experts move while they serve.
"""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.multiprocessing as mp

from ..experts.oracle import activate, dense_layer
from ..routing.oracle import route_token
from . import balancing, ranks
from .cases import CASES, CORRECTION, EXPERTS, WORLD, Case, inputs, parameters, shared_parameters

Results = list[dict[str, Any]]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """What each rank put into its file."""
    folder = tmp_path_factory.mktemp("layers")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = int(listener.getsockname()[1])
    with pytest.MonkeyPatch.context() as patch:
        # The processes import this package by the name that pytest gave it.
        patch.syspath_prepend(Path(__file__).parents[2])
        patch.setenv("ASCEND_SIM_DEVICES", str(WORLD))
        patch.setenv("VLLM_LOGGING_LEVEL", "INFO")
        # Every use of memory is to be ordered after its production, across streams too.
        patch.setenv("ASCEND_SIM_ORDER", "check")
        mp.spawn(ranks.main, args=(port, folder), nprocs=WORLD)
    return [torch.load(folder / f"{rank}.pt") for rank in range(WORLD)]


def expected(case: Case, replica: int) -> torch.Tensor:
    hidden, logits = inputs(replica, case.dtype)
    routed = [
        route_token(row, "sigmoid", 3, renormalize=True, scale=2.5, groups=(2, 1, "top2_sum"), bias=CORRECTION.tolist())
        for row in logits.double().tolist()
    ]
    all_of = parameters(case.dtype)
    weights, experts = [it for it, _ in routed], [it for _, it in routed]
    gate_up, down = (it.double() for it in shared_parameters(case.dtype))
    shared = torch.stack([down @ activate("silu", gate_up @ token) for token in hidden.double()])
    return dense_layer(hidden, weights, experts, all_of["gate_up"], all_of["down"]) + shared


# vllm#51984, va#5295: an idle rank misses collectives. va#6710, va#10466: sums reduced twice or never.
@pytest.mark.parametrize("case", CASES, ids=str)
def test_equals_the_dense_layer(case: Case, results: Results) -> None:
    for rank in range(WORLD):
        got, wanted = results[rank][str(case)]["output"], expected(case, case.arrangement.replica_of(rank))
        assert got.shape == wanted.shape
        if case.dtype == torch.float32:
            torch.testing.assert_close(got.double(), wanted, rtol=1e-5, atol=1e-5)
        else:
            # Rounded to 8 bits after both products of routed and shared experts, the activations and every sum.
            torch.testing.assert_close(got.double(), wanted, rtol=2**-6, atol=2**-4)


def test_shared_experts_run_on_a_stream_of_their_own(results: Results) -> None:
    assert all(it[str(case)]["beside"] for it in results for case in CASES)


INITIAL = [[[(3 * rank + slot) % EXPERTS for slot in range(3)] for rank in range(4)]] * 2
SCENARIOS = [it.__name__ for it in balancing.SCENARIOS]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_outputs_never_change_while_experts_move(scenario: str, results: Results) -> None:
    for rank in range(WORLD):
        wanted = expected(Case(balancing.ARRANGEMENT, "all_gather"), rank)
        for outputs in results[rank][scenario]["outputs"]:
            for layer in outputs:
                torch.testing.assert_close(layer.double(), wanted, rtol=1e-5, atol=1e-5)


def placements(scenario: str, results: Results) -> Any:
    """What the scenario recorded in the end; the same file for all ranks."""
    return results[0][scenario]["placement"]


@pytest.mark.parametrize("scenario", ["waiting_for_plans", "a_killed_planner"])
def test_experts_have_moved(scenario: str, results: Results) -> None:
    for layer, before in zip(placements(scenario, results), INITIAL, strict=True):
        assert layer != before
        assert {expert for rank in layer for expert in rank} == set(range(EXPERTS))
        assert all(len(set(rank)) == 3 for rank in layer)


def test_the_first_rank_says_what_is_done(results: Results) -> None:
    first, *others = (it["waiting_for_plans"]["log"] for it in results)
    assert others == [[]] * (WORLD - 1)
    # 16 tokens with 3 choices on 4 ranks, in two layers.
    assert re.match(r"EPLB: 24\.0 tokens a rank, at most \d+, balancedness 0\.\d{4}", first[0])
    assert any(re.search(r"random planned in .* in 2 layers \d+ experts move, \d+ bytes", it) for it in first)
    assert "EPLB: the new placement is in use in 2 layers" in first


def test_the_placement_of_a_file_is_taken(results: Results) -> None:
    held = [[sorted(rank) for rank in layer] for layer in placements("a_map_file", results)]
    assert held == [[sorted(rank) for rank in layer] for layer in balancing.MAP]


def test_a_corrupt_file_changes_nothing(results: Results) -> None:
    assert placements("a_corrupt_map_file", results) is None
