"""ACLGraphWrapper: capture once per batch descriptor, replay on the same buffers, run as is otherwise."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from vllm.compilation import monitor
from vllm.config import CUDAGraphMode, VllmConfig
from vllm.forward_context import BatchDescriptor, ForwardContext, override_forward_context
from vllm.sequence import IntermediateTensors

from vllm_ascend.graph.weak import weak_references
from vllm_ascend.graph.wrapper import ACLGraphWrapper


def context(mode: CUDAGraphMode, tokens: int) -> ForwardContext:
    return ForwardContext(
        no_compile_layers={},
        attn_metadata={},
        slot_mapping={},
        cudagraph_runtime_mode=mode,
        batch_descriptor=BatchDescriptor(tokens),
    )


@pytest.fixture
def wrapped(monkeypatch: pytest.MonkeyPatch):
    """A callable that counts its Python calls, and the wrapper around it."""
    monkeypatch.setattr(monitor, "cudagraph_capturing_enabled", True)
    calls: list[int] = []

    def double(x: torch.Tensor) -> torch.Tensor:
        calls.append(x.shape[0])
        return x * 2

    # As in vLLM's capture context: a graph cannot be captured on the default stream.
    with torch.npu.stream(torch.npu.Stream()):
        yield SimpleNamespace(calls=calls, wrapper=ACLGraphWrapper(double, VllmConfig(), CUDAGraphMode.FULL))


def test_one_capture_per_descriptor_then_replays(wrapped) -> None:
    buffer = torch.zeros(4, device="npu")
    for tokens in (4, 2, 4, 2):
        with override_forward_context(context(CUDAGraphMode.FULL, tokens)):
            wrapped.wrapper(buffer[:tokens])
    assert wrapped.calls == [4, 2]
    buffer.copy_(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    with override_forward_context(context(CUDAGraphMode.FULL, 4)):
        assert wrapped.wrapper(buffer[:4]).cpu().tolist() == [2, 4, 6, 8]
    wrapped.wrapper.clear_graphs()
    with override_forward_context(context(CUDAGraphMode.FULL, 4)):
        wrapped.wrapper(buffer[:4])
    assert wrapped.calls == [4, 2, 4]


@pytest.mark.parametrize("mode", [CUDAGraphMode.NONE, CUDAGraphMode.PIECEWISE], ids=lambda mode: mode.name)
def test_other_modes_run_the_callable(wrapped, mode: CUDAGraphMode) -> None:
    for _ in range(2):
        with override_forward_context(context(mode, 2)):
            wrapped.wrapper(torch.zeros(2, device="npu"))
    assert wrapped.calls == [2, 2]
    assert not wrapped.wrapper.captured


def test_moved_inputs_are_found_when_debugging(wrapped) -> None:
    first, second = torch.zeros(2, device="npu"), torch.zeros(2, device="npu")
    with override_forward_context(context(CUDAGraphMode.FULL, 2)):
        wrapped.wrapper(first)
        wrapped.wrapper.is_debugging_mode = True
        with pytest.raises(RuntimeError, match="inputs must be persistent buffers"):
            wrapped.wrapper(second)


def test_weak_references_keep_structure_and_refuse_the_unknown() -> None:
    tensor = torch.arange(3, device="npu")
    nested = weak_references([tensor, (tensor, None), IntermediateTensors({"residual": tensor})])
    assert (
        nested[0].data_ptr() == nested[1][0].data_ptr() == nested[2].tensors["residual"].data_ptr() == tensor.data_ptr()
    )
    assert nested[1][1] is None
    with pytest.raises(TypeError, match="returned set"):
        weak_references({1})
