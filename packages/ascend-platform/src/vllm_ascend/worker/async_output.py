"""The result of a step whose sampled tokens are still on their way to the host."""

from __future__ import annotations

import torch
from vllm.v1.outputs import LogprobsTensors, ModelRunnerOutput
from vllm.v1.worker.gpu_model_runner import AsyncGPUModelRunnerOutput

from vllm_ascend.graph.streams import current_stream, on_stream


def hold_until_copied(output: AsyncGPUModelRunnerOutput, copy_stream: torch.npu.Stream) -> None:
    """Keep the device memory of ``output`` from being handed out before ``copy_stream`` has read it.

    The output itself keeps it until its receiver has waited for the copy. Of several ranks only one has a receiver; the
    others drop their outputs at once, while their copies, which penalties and bad words read later, are under way.
    """
    for tensors in (output._logprobs_tensors, output._routed_experts, (output._sampled_token_ids,)):
        for tensor in tensors or ():
            if isinstance(tensor, torch.Tensor):
                tensor.record_stream(copy_stream)


class AscendAsyncOutput(AsyncGPUModelRunnerOutput):
    """vLLM's asynchronous output with a cheaper start of the copy; waiting and unpacking are the base class's."""

    def __init__(
        self,
        output: ModelRunnerOutput,
        sampled_token_ids: torch.Tensor,
        logprobs_tensors: LogprobsTensors | None,
        invalid_req_indices: list[int],
        copy_stream: torch.npu.Stream,
        sampled_event: torch.npu.Event,
        vocab_size: int,
    ) -> None:
        """
        Args:
            sampled_token_ids: ``[requests, 1]`` on the device.
            copy_stream: where the copy to the host runs, beside the next step.
            sampled_event: recorded here behind the sampling, for the copy to wait for.
        """
        self._model_runner_output = output
        self._invalid_req_indices = invalid_req_indices
        # The device tensors stay referenced until the copy has ended.
        self._sampled_token_ids = sampled_token_ids
        self._logprobs_tensors = logprobs_tensors
        self._routed_experts = self._routed_experts_cpu = None
        self.vocab_size = vocab_size
        self.async_copy_ready_event = torch.npu.Event()
        compute_stream = current_stream(sampled_token_ids.device.index)
        sampled_event.record(compute_stream)
        sampled_event.wait(copy_stream)
        with on_stream(copy_stream, compute_stream):
            self.sampled_token_ids_cpu = sampled_token_ids.to("cpu", non_blocking=True)
            self._logprobs_tensors_cpu = None if logprobs_tensors is None else logprobs_tensors.to_cpu_nonblocking()
            self.async_copy_ready_event.record(copy_stream)
