"""What a capture refuses, and what a replay refuses because of what became of the captured memory since."""

from collections.abc import Callable

import pytest
import torch
import torch_npu

FREED = "was captured at an address that has been freed since"


def captured(body: Callable[[], object], **options: object) -> torch.npu.NPUGraph:
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph, **options):
        body()
    return graph


def pinned(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float32).pin_memory()


# ---- copies of host memory ----


def test_copies_of_pinned_memory_are_captured_both_ways() -> None:
    source, target, x = pinned(1, 2), pinned(0, 0), torch.zeros(2, device="npu")

    def body() -> None:
        x.copy_(source, non_blocking=True)
        target.copy_(x * 2, non_blocking=True)

    graph = captured(body)
    source.copy_(torch.tensor([3.0, 4]))
    graph.replay()
    torch.npu.synchronize()
    assert target.tolist() == [6, 8]


@pytest.mark.parametrize("to_device", [pytest.param(True, id="to-device"), pytest.param(False, id="to-host")])
@pytest.mark.parametrize("non_blocking", [pytest.param(True, id="non-blocking"), pytest.param(False, id="blocking")])
def test_copies_of_pageable_memory_are_refused(to_device: bool, non_blocking: bool) -> None:
    """CANN counts them among the functions that a capture forbids (aclmdlRICaptureBegin)."""
    host, device = torch.ones(2), torch.zeros(2, device="npu")
    source, target = (host, device) if to_device else (device, host)
    what = "pageable host memory" if non_blocking else "synchronizing operation"
    with pytest.raises(RuntimeError, match=f"{what} is not permitted while the stream is capturing"):
        captured(lambda: target.copy_(source, non_blocking=non_blocking))
    target.copy_(source, non_blocking=non_blocking)  # outside it is allowed
    assert torch.equal(host, device.cpu())


def test_a_host_number_is_captured_by_its_value() -> None:
    x, factor, y = torch.ones(2, device="npu"), torch.tensor(3.0), torch.zeros(2, device="npu")
    graph = captured(lambda: torch.mul(x, factor, out=y))
    factor.fill_(5)
    graph.replay()
    assert y.tolist() == [3, 3]


# ---- waiting ----


@pytest.mark.parametrize(
    "wait",
    [
        pytest.param(lambda event: event.synchronize(), id="event"),
        pytest.param(lambda event: torch.npu.synchronize(), id="device"),
        pytest.param(lambda event: torch.npu.current_stream().synchronize(), id="stream"),
    ],
)
def test_waiting_for_captured_work_is_refused(wait: Callable[[torch.npu.Event], object]) -> None:
    x, event = torch.ones(2, device="npu"), torch.npu.Event()

    def body() -> None:
        x.add_(1)
        event.record()
        wait(event)

    with pytest.raises(RuntimeError, match="captur"):
        captured(body)
    event.record()
    wait(event)
    assert x.tolist() == [1, 1]


# ---- memory ----


def test_an_input_that_was_freed_since_is_refused() -> None:
    inputs = [torch.ones(2, device="npu")]
    y = torch.zeros(2, device="npu")
    graph = captured(lambda: torch.add(inputs[0], 1, out=y))
    graph.replay()
    assert y.tolist() == [2, 2]
    inputs[0] = torch.full((2,), 5.0, device="npu")  # a new tensor: the graph knows only the old address
    with pytest.raises(RuntimeError, match=rf"aten::add.out: argument self, float32\[2\], {FREED}"):
        graph.replay()


def test_new_values_in_place_are_taken() -> None:
    x, y = torch.ones(2, device="npu"), torch.zeros(2, device="npu")
    graph = captured(lambda: torch.add(x, 1, out=y))
    x.copy_(torch.full((2,), 5.0, device="npu"))
    graph.replay()
    assert y.tolist() == [6, 6]


def test_an_input_that_moved_is_refused() -> None:
    x, y = torch.ones(2, device="npu"), torch.zeros(2, device="npu")
    graph = captured(lambda: torch.add(x, 1, out=y))
    x.resize_(1 << 16)
    with pytest.raises(RuntimeError, match="argument self, .* captured at an address that its storage has left since"):
        graph.replay()


def test_memory_of_the_pool_may_be_freed() -> None:
    """What is allocated inside a capture belongs to the graph, which keeps it, also for a later graph of its pool."""
    y = torch.zeros(4, device="npu")
    first = torch.npu.NPUGraph()
    with torch.npu.graph(first):
        between = [torch.arange(4, device="npu") * 2.0]
    second = captured(lambda: torch.add(torch.square(between[0]), 1, out=y), pool=first.pool())
    between.clear()
    for _ in range(2):
        first.replay()
        second.replay()
    assert y.tolist() == [1, 5, 17, 37]


def test_memory_from_outside_the_pool_that_is_freed_inside_the_capture_is_refused() -> None:
    """A stream that does not capture allocates outside the graph's pool, even during the capture."""
    y, side = torch.zeros(4, device="npu"), torch.npu.Stream()

    def body() -> None:
        with torch.npu.stream(side):
            outside = torch.empty(4, device="npu")
        torch.add(outside, 1, out=y)

    with pytest.raises(RuntimeError, match=f"argument self, .*{FREED}"):
        captured(body).replay()


def test_pinned_memory_that_was_freed_since_is_refused() -> None:
    x, host = torch.zeros(2, device="npu"), [pinned(1, 2)]
    graph = captured(lambda: x.copy_(host[0], non_blocking=True))
    graph.replay()
    assert x.tolist() == [1, 2]
    host.clear()
    with pytest.raises(RuntimeError, match=rf"argument src, float32\[2\], in pinned host memory, {FREED}"):
        graph.replay()


# ---- the table of limits ----


def test_what_the_table_refuses_is_refused_at_the_capture() -> None:
    x = torch.ones(2, 3, dtype=torch.float16, device="npu")
    with pytest.raises(RuntimeError, match=r"npu_swiglu: input.shape\[dim\] is 3; the hardware allows multiples of 2"):
        captured(lambda: torch_npu.npu_swiglu(x))
    captured(lambda: torch_npu.npu_swiglu(x.repeat(1, 2))).replay()


def test_an_operator_that_graphs_cannot_hold_is_refused_at_the_capture() -> None:
    """Its page: 该接口暂不支持图模式, 不支持aclgraph."""
    query = torch.ones(1, 1, 2, 16, dtype=torch.float16, device="npu")

    def call() -> torch.Tensor:
        return torch_npu.npu_fusion_attention(query, query, query, 1, "BNSD")[0]

    with pytest.raises(
        RuntimeError, match="npu_fusion_attention: the call is captured by a graph; the hardware allows"
    ):
        captured(call)
    assert torch.equal(call(), query)


def test_a_layout_that_only_captures_lack() -> None:
    """npu_fusion_attention_v3: aclgraph支持input_layout为BNSD的场景."""
    query = torch.ones(1, 2, 1, 16, dtype=torch.float16, device="npu")
    for layout in ("BSND", "BNSD"):
        torch_npu.npu_fusion_attention_v3(query, query, query, query.shape[layout.index("N")], layout)
    with pytest.raises(RuntimeError, match="npu_fusion_attention_v3: input_layout is 'BSND'; the hardware allows BNSD"):
        captured(lambda: torch_npu.npu_fusion_attention_v3(query, query, query, 1, "BSND"))
    captured(lambda: torch_npu.npu_fusion_attention_v3(query, query, query, 2, "BNSD")).replay()
