"""The communicator of vLLM's tensor-parallel group between two processes, one NPU each."""

from __future__ import annotations

import pytest
import torch
import torch.multiprocessing as mp
from vllm.utils.network_utils import get_open_port

WORLD = 2
SIZES = [1, 3]


def rows(*values: float) -> torch.Tensor:
    """One row of two columns per value: the value and ten times it."""
    return torch.tensor([[value, 10 * value] for value in values], device="npu")


def check(rank: int, port: int) -> None:
    """Runs in each process: what this rank holds afterwards, worked out by hand."""
    from vllm.config import VllmConfig, set_current_vllm_config
    from vllm.distributed.parallel_state import (
        cleanup_dist_env_and_memory,
        get_tp_group,
        init_distributed_environment,
        initialize_model_parallel,
    )

    torch.npu.set_device(rank)
    with set_current_vllm_config(VllmConfig()):
        init_distributed_environment(WORLD, rank, f"tcp://127.0.0.1:{port}", rank, "hccl")
        initialize_model_parallel(WORLD)
    communicator = get_tp_group().device_communicator

    mine = rows(1) if rank == 0 else rows(2, 3, 4)
    everything = [[1, 10], [2, 20], [3, 30], [4, 40]]
    assert communicator.all_gatherv(mine, 0, SIZES).tolist() == everything
    both = communicator.all_gatherv([mine, -mine], 0, SIZES)
    assert [tensor.tolist() for tensor in both] == [everything, [[-a, -b] for a, b in everything]]
    assert communicator.all_gatherv(rows(rank + 1)).tolist() == [[1, 10], [2, 20]]

    # Rank 0 adds 1, 2, 3, 4 and rank 1 adds 2, 3, 4, 5: one row of the sum for rank 0, three for rank 1.
    given = rows(*(rank + value for value in (1, 2, 3, 4)))
    before = given.clone()
    expected = [[[3, 30]], [[5, 50], [7, 70], [9, 90]]]
    assert communicator.reduce_scatterv(given, 0, SIZES).tolist() == expected[rank]
    assert torch.equal(given, before), "the input belongs to the caller"
    assert communicator.reduce_scatterv(rows(1, 2), 0).tolist() == [[[2, 20]], [[4, 40]]][rank]

    for call, message in (
        (lambda: communicator.all_gatherv(mine, 0, [2, 2]), r"sizes\[\d\] is 2, but this rank holds \d rows"),
        (lambda: communicator.all_gatherv(mine, 0, [1, 3, 1]), "3 sizes for 2 ranks; one per rank is needed"),
        (lambda: communicator.reduce_scatterv(given, 0, [4]), "1 sizes for 2 ranks; one per rank is needed"),
        (lambda: communicator.all_gatherv(mine, 1, SIZES), "gathers along dimension 0, got dim=1"),
        (lambda: communicator.reduce_scatterv(given, 0, [1, 2]), r"sizes \[1, 2\] do not add up to 4 rows"),
        (lambda: communicator.reduce_scatterv(given, 1, SIZES), "scatters along dimension 0, got dim=1"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    cleanup_dist_env_and_memory()


def test_uneven_rows_are_gathered_and_scattered() -> None:
    mp.spawn(check, args=(get_open_port(),), nprocs=WORLD)
