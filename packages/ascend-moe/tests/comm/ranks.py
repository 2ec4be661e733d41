"""What every rank runs: all cases, in order; the results go to a file."""

from __future__ import annotations

import datetime
import os
from pathlib import Path

import torch
import torch.distributed as dist

from ascend_moe.comm import AllGather, AllToAll, ExpertRanks, FusedDispatch, SameTokens, Tokens, run
from ascend_moe.experts import Activation, ExpertWeights, bias_dtype
from ascend_moe.routing import Choice, choose_route

from .cases import CASES, CORRECTION, EXPERTS, MOST_TOKENS, STYLES, WORLD, Case, dtype_of, inputs, parameters


def main(rank: int, port: int, folder: Path) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    torch.npu.set_device(rank)
    dist.init_process_group("hccl", rank=rank, world_size=WORLD, timeout=datetime.timedelta(seconds=120))
    groups = {size: group_of(rank, size) for size in (1, 2, 4)}
    results = {str(case): layer(case, rank, groups) for case in CASES}
    torch.save(results, folder / f"{rank}.pt")
    dist.destroy_process_group()


def group_of(rank: int, size: int) -> dist.ProcessGroup:
    """This rank's group of so many neighbours; every rank makes all of them."""
    made = [dist.new_group(list(range(first, first + size))) for first in range(0, WORLD, size)]
    return made[rank // size]


def layer(case: Case, rank: int, groups: dict[int, dist.ProcessGroup]) -> torch.Tensor:
    style, dtype = STYLES[case.style], dtype_of(case.method)
    ranks = ExpertRanks(groups[case.ranks], EXPERTS)
    same = SameTokens(groups[case.same]) if case.same > 1 else None
    exchange = {
        "all_gather": AllGather(ranks, MOST_TOKENS, same),
        "all_to_all": AllToAll(ranks, same),
        "fused_dispatch": FusedDispatch(ranks, MOST_TOKENS, same),
    }[case.method]
    here = slice(ranks.rank * ranks.local, (ranks.rank + 1) * ranks.local)
    mine = {name: it[here].npu() for name, it in parameters(dtype).items()}
    biases = [mine[name].to(bias_dtype(dtype)) for name in ("gate_up_bias", "down_bias")] if style.biased else []
    hidden, logits = (it.npu() for it in inputs(case, rank, dtype))
    correction = CORRECTION.npu() if style.corrected else None
    choice = choose_route(style.rule, EXPERTS)(style.rule, logits, correction)
    if style.weight_on_input:
        hidden, choice = hidden * choice.weights.to(dtype), Choice(torch.ones_like(choice.weights), choice.experts)
    weights = ExpertWeights(mine["gate_up"], mine["down"], *biases)
    return run(exchange, Tokens(hidden, choice), weights, Activation.of(style.activation)).cpu()
