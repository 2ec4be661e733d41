"""Layers on four ranks, one simulated NPU each, against the dense layer in float64."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from ascend_moe.comm import AllGather, ExpertRanks, FusedDispatch, Tokens
from ascend_moe.routing import Choice

from ..experts.oracle import dense_layer
from ..routing.oracle import route_token
from . import ranks
from .cases import CASES, CORRECTION, EXPERTS, STYLES, WORLD, Case, dtype_of, inputs, parameters

Results = list[dict[str, torch.Tensor]]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """What each rank got for each case, from one start of four processes."""
    folder = tmp_path_factory.mktemp("ranks")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = int(listener.getsockname()[1])
    with pytest.MonkeyPatch.context() as patch:
        # The processes import this package by the name that pytest gave it.
        patch.syspath_prepend(Path(__file__).parents[2])
        patch.setenv("ASCEND_SIM_DEVICES", str(WORLD))
        mp.spawn(ranks.main, args=(port, folder), nprocs=WORLD)
    return [torch.load(folder / f"{rank}.pt") for rank in range(WORLD)]


def expected(case: Case, rank: int) -> torch.Tensor:
    style, dtype = STYLES[case.style], dtype_of(case.method)
    hidden, logits = inputs(case, rank, dtype)
    rule, groups = style.rule, style.rule.groups
    routed = [
        route_token(
            row,
            str(rule.scoring),
            rule.top_k,
            renormalize=rule.renormalize,
            scale=rule.scale,
            groups=(groups.count, groups.kept, str(groups.score)) if groups else None,
            bias=CORRECTION.tolist() if style.corrected else None,
        )
        for row in logits.double().tolist()
    ]
    weights, experts = [it for it, _ in routed], [it for _, it in routed]
    if style.weight_on_input:
        hidden = hidden.double() * torch.tensor(weights, dtype=torch.float64).view(-1, 1)
        weights = [[1.0]] * len(weights)
    all_of = parameters(dtype)
    biases = {name: all_of[name] for name in ("gate_up_bias", "down_bias")} if style.biased else {}
    return dense_layer(hidden, weights, experts, all_of["gate_up"], all_of["down"], style.activation, **biases)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_equals_the_dense_layer(case: Case, results: Results) -> None:
    for rank in range(WORLD):
        got, wanted = results[rank][str(case)], expected(case, rank)
        assert got.dtype == dtype_of(case.method)
        assert got.shape == wanted.shape
        if got.dtype == torch.float32:
            torch.testing.assert_close(got.double(), wanted, rtol=1e-5, atol=1e-5)
        else:
            # Rounded to 8 bits after the first product, the activation, the second product and the sum.
            torch.testing.assert_close(got.double(), wanted, rtol=2**-6, atol=2**-5)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExpertRanks]:
    """A group of this process alone."""
    store = dist.FileStore(str(tmp_path_factory.mktemp("store") / "file"), 1)
    dist.init_process_group("hccl", store=store, rank=0, world_size=1)
    yield ExpertRanks(dist.group.WORLD, EXPERTS)
    dist.destroy_process_group()


def tokens(count: int, dtype: torch.dtype = torch.bfloat16) -> Tokens:
    choice = Choice(torch.ones(count, 1), torch.zeros(count, 1, dtype=torch.int32))
    return Tokens(torch.zeros(count, 4, dtype=dtype), choice)


def test_more_tokens_than_it_was_made_for_are_refused(alone: ExpertRanks) -> None:
    with pytest.raises(ValueError, match="5 tokens are to be gathered, the exchange was made for at most 4"):
        AllGather(alone, 4).dispatch(tokens(5))
    with pytest.raises(ValueError, match="5 tokens are to be sent, the exchange was made for at most 4"):
        FusedDispatch(alone, 4).dispatch(tokens(5))


def test_the_fused_operators_take_half_precision_alone(alone: ExpertRanks) -> None:
    with pytest.raises(ValueError, match=r"takes torch\.float16 and torch\.bfloat16, not torch\.float32"):
        FusedDispatch(alone, 4).dispatch(tokens(2, torch.float32))
