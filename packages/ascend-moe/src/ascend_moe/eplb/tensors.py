"""The same, from tensors to tensors: for callers whose maps live on a device."""

from __future__ import annotations

import torch

from ascend_moe.eplb.planning import plan
from ascend_moe.eplb.problem import Policy, Problem
from ascend_moe.eplb.routing import replicas


def rebalance(
    policy: Policy, loads: torch.Tensor, physical_to_logical: torch.Tensor, ranks: int, nodes: int = 1
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the maps of a new placement, as int64 tensors on the device of `loads`.

    Args:
        policy: who proposes it.
        loads: [layers, logical experts], any real dtype.
        physical_to_logical: the present placement, [layers, physical experts]; slot s of rank r is r × slots + s.
        ranks: number of ranks that the physical experts are spread over evenly.
        nodes: hosts that the ranks are spread over evenly.

    Returns:
        (physical to logical [layers, physical experts], logical to physical [layers, logical experts, most replicas]
        padded with -1, replicas [layers, logical experts])

    Raises:
        ValueError: numbers that do not divide, or arguments that `Problem` refuses.
    """
    layers, physical = physical_to_logical.shape
    if ranks < 1 or physical % ranks:
        raise ValueError(f"{physical} physical experts do not divide evenly among {ranks} ranks")
    present = physical_to_logical.cpu().numpy().reshape(layers, ranks, physical // ranks)
    problem = Problem(loads.to("cpu", torch.float64).numpy(), present, nodes)
    placement = plan(policy, problem).placement
    table, counts = replicas(placement, problem.experts)
    return (
        torch.from_numpy(placement.reshape(layers, physical)).to(loads.device),
        torch.from_numpy(table).to(loads.device),
        torch.from_numpy(counts).to(loads.device),
    )
