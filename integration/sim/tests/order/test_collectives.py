"""Collectives run beside the stream that begins them, until a stream waits for their Work."""

from collections.abc import Iterator

import pytest
import torch
import torch.distributed as dist

from ascend_sim import instruments

from .streams import SIDE


@pytest.fixture(scope="module", autouse=True)
def _group() -> Iterator[None]:
    dist.init_process_group("hccl", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_a_collective_that_nobody_waits_for_is_found() -> None:
    with instruments.check_order():
        x = torch.ones(8, device="npu")
        work = dist.all_reduce(x, async_op=True)
        with pytest.raises(RuntimeError, match=r"aten::add_\S* on .* writes .*c10d::allreduce_ on the stream of a"):
            x.add_(1)
        work.wait()
        x.add_(1)


def test_waiting_orders_the_stream_that_waits_and_no_other() -> None:
    with instruments.check_order():
        x = torch.ones(8, device="npu")
        dist.all_reduce(x)
        x.add_(1)
        with torch.npu.stream(SIDE), pytest.raises(RuntimeError, match="unordered: aten::add_"):
            x.add_(1)


def test_a_barrier_orders_the_host() -> None:
    with instruments.check_order():
        x = torch.ones(8, device="npu")
        dist.barrier(device_ids=[0])
        with torch.npu.stream(SIDE):
            x.add_(1)


@pytest.mark.parametrize("seed", range(4))
def test_collectives_in_random_order_keep_theirs(seed: int) -> None:
    with instruments.random_order(seed):
        x, y = torch.ones(8, device="npu"), torch.ones(8, device="npu")
        SIDE.wait_stream(torch.npu.current_stream())
        dist.all_reduce(x)
        with torch.npu.stream(SIDE):
            dist.all_reduce(y)
            y.add_(1)
        x.add_(2)
        torch.npu.current_stream().wait_stream(SIDE)
        assert (x + y).tolist() == [5] * 8
