"""Custom operators of an adopted namespace run as one device operator."""

from collections.abc import Iterator

import pytest
import torch

from ascend_sim import instruments


def _accumulate(total: torch.Tensor, x: torch.Tensor) -> None:
    total.add_(x).mul_(2)


@pytest.fixture(scope="module")
def library() -> Iterator[torch.library.Library]:
    """Operators registered long after the simulation was installed."""
    library = torch.library.Library("ascend_kernels", "FRAGMENT")
    library.define("sim_test_scale(Tensor x, float factor) -> Tensor")
    library.define("sim_test_accumulate(Tensor(a!) total, Tensor x) -> ()")
    library.define("sim_test_own(Tensor x) -> Tensor")
    library.impl("sim_test_scale", lambda x, factor: (x * factor).relu(), "CompositeExplicitAutograd")
    library.impl("sim_test_accumulate", _accumulate, "CPU")
    library.impl("sim_test_own", lambda x: x + 1, "PrivateUse1")
    torch.library.register_fake("ascend_kernels::sim_test_scale", lambda x, factor: torch.empty_like(x), lib=library)
    yield library
    library._destroy()


def test_it_is_one_launch(library: torch.library.Library) -> None:
    x = torch.tensor([1.0, -1.0]).npu()
    with instruments.counting() as counts:
        result = torch.ops.ascend_kernels.sim_test_scale(x, 3.0)
    assert result.device.type == "npu"
    assert result.tolist() == [3, 0]
    assert counts["ops"] == counts["op:ascend_kernels::sim_test_scale"] == 1


def test_it_writes_device_memory(library: torch.library.Library) -> None:
    total = torch.ones(2, device="npu")
    torch.ops.ascend_kernels.sim_test_accumulate(total, torch.tensor([1.0, 2.0]).npu())
    assert total.tolist() == [4, 6]


def test_it_is_one_task_of_a_graph(library: torch.library.Library) -> None:
    x, total = torch.tensor([1.0, 2.0]).npu(), torch.zeros(2, device="npu")
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        torch.ops.ascend_kernels.sim_test_accumulate(total, torch.ops.ascend_kernels.sim_test_scale(x, 10.0))
    assert total.tolist() == [0, 0]
    with instruments.counting() as counts:
        graph.replay()
    assert counts["graph_tasks"] == 2
    assert total.tolist() == [20, 40]


def test_an_operator_with_a_kernel_for_the_device_runs_that(library: torch.library.Library) -> None:
    with instruments.counting() as counts:
        assert torch.ops.ascend_kernels.sim_test_own(torch.ones(1, device="npu")).item() == 2
    assert counts["op:ascend_kernels::sim_test_own"] == 0
    assert counts["op:aten::add.Tensor"] == 1
