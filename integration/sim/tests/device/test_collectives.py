"""HCCL over gloo between spawned processes, one simulated NPU each."""

import datetime
import os
import socket
import time
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from ascend_sim import instruments

WORLD = 2


def _port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _start(rank: int, port: int, timeout: float, options: Any = None) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.npu.set_device(rank)
    dist.init_process_group(
        "hccl", rank=rank, world_size=WORLD, timeout=datetime.timedelta(seconds=timeout), pg_options=options
    )


def _npu(*values: float, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.tensor(values, dtype=dtype).npu()


def _check_collectives(rank: int) -> None:
    other = 1 - rank
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.int32):
        total = _npu(rank + 1, 10 * (rank + 1), dtype=dtype)
        dist.all_reduce(total)
        assert total.tolist() == [3, 30], dtype
    largest = _npu(rank, -rank)
    dist.all_reduce(largest, op=dist.ReduceOp.MAX)
    assert largest.tolist() == [1, 0]

    gathered = torch.empty(4, device="npu")
    dist.all_gather_into_tensor(gathered, _npu(rank, rank + 10))
    assert gathered.tolist() == [0, 10, 1, 11]
    parts = [torch.empty(1, dtype=torch.int64, device="npu") for _ in range(WORLD)]
    dist.all_gather(parts, _npu(rank + 5, dtype=torch.int64))
    assert [part.item() for part in parts] == [5, 6]
    flags = [torch.empty(2, dtype=torch.bool, device="npu") for _ in range(WORLD)]
    dist.all_gather(flags, torch.tensor([rank == 0, True]).npu())
    assert [flag.tolist() for flag in flags] == [[True, True], [False, True]]

    scattered = torch.empty(1, device="npu")
    dist.reduce_scatter_tensor(scattered, _npu(rank, rank + 1))
    assert scattered.item() == (1, 3)[rank]
    listed = torch.empty(1, device="npu")
    dist.reduce_scatter(listed, [_npu(rank), _npu(rank + 1)])
    assert listed.item() == (1, 3)[rank]

    shared = _npu(7 if rank == 1 else 0)
    dist.broadcast(shared, src=1)
    assert shared.item() == 7
    # Rank 0 keeps one value and sends two; rank 1 sends two and keeps one.
    sent, expected = ([1, 2], [0, 10, 11]) if rank == 0 else ([2, 1], [1, 2, 12])
    received = torch.empty(3, device="npu")
    dist.all_to_all_single(received, _npu(*(10 * rank + i for i in range(3))), [1, 2] if rank == 0 else [2, 1], sent)
    assert received.tolist() == expected
    outputs = [torch.empty(2, device="npu") for _ in range(WORLD)]
    dist.all_to_all(outputs, [_npu(rank, 0), _npu(rank, 1)])
    assert [output.tolist() for output in outputs] == [[0, rank], [1, rank]]

    message = torch.empty(2, device="npu")
    if rank == 0:
        dist.send(_npu(1, 2), dst=1)
        dist.recv(message, src=1)
    else:
        dist.recv(message, src=0)
        dist.send(message + 1, dst=0)
    assert message.tolist() == [[2, 3], [1, 2]][rank]
    incoming = torch.empty(1, device="npu")
    operations = [dist.P2POp(dist.isend, _npu(rank), other), dist.P2POp(dist.irecv, incoming, other)]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    assert incoming.item() == other

    objects: list[Any] = [None] * WORLD
    dist.all_gather_object(objects, {"rank": rank})
    assert objects == [{"rank": 0}, {"rank": 1}]
    box = [f"from {rank}"]
    dist.broadcast_object_list(box, src=0)
    assert box == ["from 0"]
    dist.barrier()

    work = dist.all_reduce(asynchronous := _npu(1), async_op=True)
    work.wait()
    assert asynchronous.item() == 2


def _check_groups(rank: int) -> None:
    alone = [dist.new_group([member], backend="hccl") for member in range(WORLD)]
    both = dist.new_group([0, 1], backend="hccl")
    value = _npu(rank + 1)
    dist.all_reduce(value, group=alone[rank])
    assert value.item() == rank + 1
    dist.all_reduce(value, group=both)
    assert value.item() == 3
    with pytest.raises(RuntimeError, match="cpu"):
        dist.all_reduce(torch.ones(1), group=both)


def _check_graph(rank: int) -> None:
    source = _npu(0)
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        total = source * 2
        dist.all_reduce(total)
        gathered = torch.empty(WORLD, device="npu")
        dist.all_gather_into_tensor(gathered, source)
        result = total + 1
    for step in range(3):
        source.fill_(rank + step)
        graph.replay()
        assert result.item() == 2 * (2 * step + 1) + 1
        assert gathered.tolist() == [step, step + 1]


def _check_random_order(rank: int) -> None:
    """A host that waits for the other one leaves its device alone, which must do its part all the same."""
    store = dist.distributed_c10d._get_default_store()
    for seed in range(6):
        with instruments.random_order(seed):
            total = _npu(rank + 1)
            dist.all_reduce(total)
            if rank == 0:
                torch.npu.synchronize()
                store.set(f"reduced with seed {seed}", "")
            else:
                store.wait([f"reduced with seed {seed}"], datetime.timedelta(seconds=30))
            assert total.item() == 3


CHECKS = {
    "collectives": _check_collectives,
    "groups": _check_groups,
    "graph": _check_graph,
    "random order": _check_random_order,
}


def _worker(rank: int, port: int) -> None:
    import torch_npu

    _start(rank, port, 60, torch_npu._C._distributed_c10d.ProcessGroupHCCL.Options())
    for check in CHECKS.values():
        check(rank)
    dist.destroy_process_group()


def test_collectives_groups_and_graphs() -> None:
    mp.spawn(_worker, (_port(),), nprocs=WORLD)


def _dies(rank: int, port: int, report: str) -> None:
    _start(rank, port, 5)
    dist.all_reduce(_npu(1))
    if rank == 1:
        os._exit(0)
    started = time.monotonic()
    try:
        dist.all_reduce(_npu(1))
    except RuntimeError as error:
        Path(report).write_text(f"{time.monotonic() - started}\n{error}")
    os._exit(0)  # the group cannot be torn down with a dead member


def test_a_dead_peer_is_an_error_within_the_timeout(tmp_path: Path) -> None:
    report = tmp_path / "report"
    mp.spawn(_dies, (_port(), str(report)), nprocs=WORLD)
    seconds, message = report.read_text().split("\n", 1)
    assert float(seconds) < 15
    assert "c10d::allreduce_" in message
    assert "HCCL" in message
