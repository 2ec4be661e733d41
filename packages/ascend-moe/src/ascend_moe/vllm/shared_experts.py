"""Shared experts beside the routed ones, on a stream of their own."""

from __future__ import annotations

from functools import cache

import torch
import vllm.envs as envs
from vllm.model_executor.layers.fused_moe.runner.shared_experts import SharedExperts, SharedExpertsOrder


@cache
def side_stream(device: int) -> torch.npu.Stream:
    """The one stream of a device on which shared experts run."""
    return torch.npu.Stream(device)


class AscendSharedExperts(SharedExperts):
    """As vLLM's, whose second stream is for CUDA devices alone.

    The stream is used under vLLM's own conditions: for at most ``VLLM_SHARED_EXPERTS_STREAM_TOKEN_THRESHOLD`` tokens,
    and not with ``VLLM_DISABLE_SHARED_EXPERTS_STREAM``. It starts where the layer starts, and the layer's own stream
    waits for it after the routed experts.
    """

    def _determine_shared_experts_order(self, hidden_states: torch.Tensor) -> SharedExpertsOrder:
        order = super()._determine_shared_experts_order(hidden_states)
        few = len(hidden_states) <= envs.VLLM_SHARED_EXPERTS_STREAM_TOKEN_THRESHOLD
        if order is SharedExpertsOrder.NO_OVERLAP and few and not envs.VLLM_DISABLE_SHARED_EXPERTS_STREAM:
            return SharedExpertsOrder.MULTI_STREAM_OVERLAPPED
        return order

    def maybe_sync_shared_experts_stream(self, shared_experts_input: torch.Tensor) -> None:
        """Let the second stream start once the input is there."""
        order = self._determine_shared_experts_order(shared_experts_input)
        if order is not SharedExpertsOrder.MULTI_STREAM_OVERLAPPED:
            return
        stream = side_stream(torch.npu.current_device())
        # The input may be freed before the second stream has read it.
        shared_experts_input.record_stream(stream)
        stream.wait_stream(torch.npu.current_stream())

    def _run_in_aux_stream(self, shared_experts_input: torch.Tensor) -> torch.Tensor:
        stream = side_stream(torch.npu.current_device())
        with torch.npu.stream(stream):
            output = self._layer(shared_experts_input)
        torch.npu.current_stream().wait_stream(stream)
        return output
