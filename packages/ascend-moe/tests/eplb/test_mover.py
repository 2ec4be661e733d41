"""Experts move between two ranks while the layer serves."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.multiprocessing as mp

from . import moving
from .moving import AFTER, EXPERTS, SCALES, TOKENS, WORLD


def spawn(body: Callable[[int, int, Path], None], folder: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = int(listener.getsockname()[1])
    with pytest.MonkeyPatch.context() as patch:
        # The processes import this package by the name that pytest gave it.
        patch.syspath_prepend(Path(__file__).parents[2])
        patch.setenv("ASCEND_SIM_DEVICES", str(WORLD))
        mp.spawn(body, args=(port, folder), nprocs=WORLD)


@pytest.fixture(scope="module")
def rebalanced(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What each of two ranks saw, from one start of the processes."""
    folder = tmp_path_factory.mktemp("ranks")
    spawn(moving.rebalance, folder)
    return [torch.load(folder / f"{rank}.pt") for rank in range(WORLD)]


@pytest.mark.parametrize("rank", range(WORLD))
def test_results_stay_the_same_across_a_live_rebalance(rank: int, rebalanced: list[dict[str, Any]]) -> None:
    # sglang#17162, va#13414: weights moved, their scales did not.
    found = rebalanced[rank]
    assert found["before"].abs().max() > 1
    assert torch.equal(found["meanwhile"], found["before"])
    assert torch.equal(found["after"], found["before"])
    assert found["kept"]
    assert found["scale"].tolist() == SCALES[torch.from_numpy(AFTER[rank])].tolist()


@pytest.mark.parametrize("rank", range(WORLD))
def test_choices_were_counted_by_slot(rank: int, rebalanced: list[dict[str, Any]]) -> None:
    counted = rebalanced[rank]["counted"]
    # Three experts of each token, in two steps; every expert was chosen by some token.
    assert counted.shape == AFTER.shape
    assert counted.sum() == 2 * 3 * TOKENS
    assert (counted > 0).sum() >= EXPERTS


@pytest.mark.parametrize("rank", range(WORLD))
def test_ranks_whose_tensors_differ_are_named(rank: int, rebalanced: list[dict[str, Any]]) -> None:
    error = rebalanced[rank]["refusal"]
    assert error.startswith("layer 7: rank 1 has the tensors {'down': 'torch.float32 [4, 8, 12]', 'gate_up':")
    assert "rank 0 has {'down'" in error
    assert "'scale': 'torch.float32 [4]'" in error


def test_a_lost_peer_leaves_the_present_placement(tmp_path: Path) -> None:
    spawn(moving.lose_a_peer, tmp_path)
    found = torch.load(tmp_path / "0.pt")
    assert found["error"].startswith("layer 0: rank 0 could not exchange experts with the ranks [1]: ")
    assert found["error"].endswith("The present placement goes on to serve")
    assert found["same"]
