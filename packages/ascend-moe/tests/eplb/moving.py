"""What the ranks of the tests of `ascend_moe.eplb.mover` run."""

from __future__ import annotations

import datetime
import os
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

from ascend_moe.comm import AllToAll, ExpertRanks, Tokens, run
from ascend_moe.eplb.mover import ExpertMover, TransferError
from ascend_moe.eplb.replica_map import ReplicaMap
from ascend_moe.eplb.transfer import plan_transfers
from ascend_moe.experts import Activation, ExpertWeights
from ascend_moe.routing import Choice

WORLD, EXPERTS, HIDDEN, INTERMEDIATE, TOKENS = 2, 6, 8, 12, 9
BEFORE = np.array([[0, 1, 2, 3], [4, 5, 0, 1]])
# Experts 2 and 4 change ranks; rank 0 gives up its replica of 0 for one of 5, slot by slot.
AFTER = np.array([[5, 1, 4, 3], [2, 5, 0, 1]])


def draw(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


GATE_UP, DOWN = draw(EXPERTS, 2 * INTERMEDIATE, HIDDEN, seed=1), draw(EXPERTS, HIDDEN, INTERMEDIATE, seed=2)
SCALES = torch.arange(1.0, EXPERTS + 1)


def start(rank: int, port: int) -> ExpertMover:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    torch.npu.set_device(rank)
    timeout = datetime.timedelta(seconds=60)
    dist.init_process_group("hccl", rank=rank, world_size=WORLD, timeout=timeout)
    return ExpertMover(dist.group.WORLD, dist.new_group(backend="gloo", timeout=timeout))


def held(slots: np.ndarray) -> dict[str, torch.Tensor]:
    """A rank's tensors; the scales belong to the experts as the weights do."""
    named = {"gate_up": GATE_UP, "down": DOWN, "scale": SCALES}
    return {name: it[torch.from_numpy(slots)].npu() for name, it in named.items()}


def step(ranks: ExpertRanks, tensors: dict[str, torch.Tensor], replicas: ReplicaMap) -> torch.Tensor:
    """A layer whose first products are scaled by expert, on tokens of this rank."""
    hidden = draw(TOKENS, HIDDEN, seed=10 + ranks.rank).npu()
    order = torch.stack([torch.randperm(EXPERTS, generator=torch.Generator().manual_seed(it)) for it in range(TOKENS)])
    logical, weights = order[:, :3].int().npu(), draw(TOKENS, 3, seed=3).abs().npu()
    physical = replicas.to_physical(logical)
    replicas.record(physical)
    scaled = ExpertWeights(tensors["gate_up"] * tensors["scale"].view(-1, 1, 1), tensors["down"])
    return run(AllToAll(ranks), Tokens(hidden, Choice(weights, physical)), scaled, Activation.of("silu")).cpu()


def rebalance(rank: int, port: int, folder: Path) -> None:
    """Serve, move, serve: the same results from other slots."""
    mover = start(rank, port)
    ranks, tensors = ExpertRanks(dist.group.WORLD, BEFORE.size), held(BEFORE[rank])
    replicas = ReplicaMap(BEFORE, EXPERTS, rank, "npu")
    addresses = [it.data_ptr() for it in tensors.values()]
    before = step(ranks, tensors, replicas)
    refusal = "none"
    try:
        # As if rank 1 had no scales.
        mover.check(7, {name: it for name, it in tensors.items() if (rank, name) != (1, "scale")})
    except ValueError as error:
        refusal = str(error)
    mover.check(0, tensors)
    (transfers,) = plan_transfers(BEFORE[None], AFTER[None])
    received = mover.receive(transfers, tensors)
    meanwhile = step(ranks, tensors, replicas)
    mover.commit(received, tensors)
    counted = replicas.counts()
    replicas.switch(AFTER)
    after = step(ranks, tensors, replicas)
    torch.save(
        {
            "before": before,
            "meanwhile": meanwhile,
            "after": after,
            "counted": torch.from_numpy(counted),
            "kept": addresses == [it.data_ptr() for it in tensors.values()],
            "scale": tensors["scale"].cpu(),
            "refusal": refusal,
        },
        folder / f"{rank}.pt",
    )
    dist.destroy_process_group()


def lose_a_peer(rank: int, port: int, folder: Path) -> None:
    """Rank 1 ends when the experts are to be exchanged."""
    mover = start(rank, port)
    tensors = held(BEFORE[rank])
    mover.check(0, tensors)
    if rank == 1:
        os._exit(0)
    (transfers,) = plan_transfers(BEFORE[None], AFTER[None])
    error = "none"
    try:
        mover.receive(transfers, tensors)
    except TransferError as caught:
        error = str(caught)
    same = all(torch.equal(it.cpu(), held(BEFORE[rank])[name].cpu()) for name, it in tensors.items())
    torch.save({"error": error, "same": same}, folder / "0.pt")
    os._exit(0)
