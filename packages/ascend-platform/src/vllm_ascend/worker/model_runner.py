"""vLLM's V1 model runner on the NPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import vllm.envs as envs
import vllm.v1.worker.gpu_model_runner as upstream
from vllm.compilation.cuda_graph import CUDAGraphWrapper
from vllm.config import CUDAGraphMode, VllmConfig
from vllm.distributed.parallel_state import get_pp_group
from vllm.v1.kv_cache_interface import KVCacheConfig
from vllm.v1.outputs import EMPTY_MODEL_RUNNER_OUTPUT, ModelRunnerOutput, SamplerOutput
from vllm.v1.sample.rejection_sampler import RejectionSampler
from vllm.v1.sample.sampler import Sampler

from vllm_ascend.graph.wrapper import ACLGraphWrapper
from vllm_ascend.sample.bitmask import apply_grammar_bitmask
from vllm_ascend.sample.sampler import AscendSampler
from vllm_ascend.worker.async_output import AscendAsyncOutput, hold_until_copied
from vllm_ascend.worker.block_table import adopt
from vllm_ascend.worker.decode_step import DecodeStep

if TYPE_CHECKING:
    from vllm.v1.core.sched.output import GrammarOutput, SchedulerOutput


class AscendModelRunner(upstream.GPUModelRunner):
    """The model runner of one NPU.

    Three seams let other components replace parts without patches: :meth:`make_sampler`, :meth:`make_proposer` and
    :meth:`make_rejection_sampler`; each is called once, at the end of construction.

    A step in which every request computes one token takes a short path through input preparation, attention metadata
    and bookkeeping (:mod:`vllm_ascend.worker.decode_step`); any other step, and any configuration that needs more than
    that path provides, takes vLLM's. Both give the same results.
    """

    def __init__(self, vllm_config: VllmConfig, device: torch.device) -> None:
        super().__init__(vllm_config, device)
        self.cascade_attn_enabled = False
        adopt(self.input_batch.block_table)
        self.decode_step: DecodeStep | None = None
        self.plain_decode: DecodeStep | None = None
        self.sampled_event = torch.npu.Event()
        self.sampler = self.make_sampler()
        if hasattr(self, "drafter"):
            self.drafter = self.make_proposer(self.drafter)
            self.rejection_sampler = self.make_rejection_sampler()

    def make_sampler(self) -> Sampler:
        """The sampler of target tokens."""
        return AscendSampler(self.model_config.logprobs_mode, self.model_config.use_fp64_gumbel)

    def make_proposer(self, default: Any) -> Any:
        """The proposer of draft tokens; ``default`` is vLLM's for the configured method."""
        return default

    def make_rejection_sampler(self) -> RejectionSampler:
        """The sampler that accepts or rejects draft tokens."""
        return RejectionSampler(self.sampler, self.speculative_config, self.device)

    def may_reinitialize_input_batch(self, kv_cache_config: KVCacheConfig, kernel_block_sizes: list[int]) -> None:
        super().may_reinitialize_input_batch(kv_cache_config, kernel_block_sizes)
        adopt(self.input_batch.block_table)

    def initialize_kv_cache(self, kv_cache_config: KVCacheConfig, *args: Any, **kwargs: Any) -> None:
        super().initialize_kv_cache(kv_cache_config, *args, **kwargs)
        supported = DecodeStep.supports(self, self.kv_cache_config)
        self.decode_step = DecodeStep(self, self.kv_cache_config) if supported else None

    def load_model(self, load_dummy_weights: bool = False) -> None:
        super().load_model(load_dummy_weights)
        if type(self.model) is CUDAGraphWrapper:
            self.model = ACLGraphWrapper(self.model.unwrap(), self.vllm_config, CUDAGraphMode.FULL)

    def _prepare_inputs(self, scheduler_output: SchedulerOutput, num_scheduled_tokens: np.ndarray) -> tuple[Any, Any]:
        num_reqs = self.input_batch.num_reqs
        one_token_each = (
            scheduler_output.total_num_scheduled_tokens == num_reqs
            and not scheduler_output.scheduled_spec_decode_tokens
            # Prompt log-probabilities are cut out by the query offsets, which only the general path stages.
            and not self.num_prompt_logprobs
        )
        self.plain_decode = self.decode_step if one_token_each else None
        if self.plain_decode is None:
            return super()._prepare_inputs(scheduler_output, num_scheduled_tokens)
        self.plain_decode.prepare(num_reqs)
        # Row i of the hidden states belongs to request i, so taking the logits' rows is a view.
        return slice(0, num_reqs), None

    def _get_slot_mappings(
        self, num_tokens_padded: int, num_reqs_padded: int, num_tokens_unpadded: int, ubatch_slices: Any = None
    ) -> tuple[Any, Any]:
        step = self.plain_decode
        if step is not None:
            if num_tokens_padded > step.rows:
                # Another data-parallel rank asked for a larger graph than this batch alone would take.
                step.prepare(num_tokens_unpadded, num_tokens_padded)
            views = step.views(num_tokens_padded)
            return views.slots_by_group, views.slots_by_layer
        return super()._get_slot_mappings(num_tokens_padded, num_reqs_padded, num_tokens_unpadded, ubatch_slices)

    def _build_attention_metadata(self, num_tokens: int, num_reqs: int, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        if self.plain_decode is not None:
            return self.plain_decode.metadata(kwargs.get("num_tokens_padded") or num_tokens), None
        return super()._build_attention_metadata(num_tokens, num_reqs, *args, **kwargs)

    def _dummy_run(self, *args: Any, **kwargs: Any) -> Any:
        self.plain_decode = None
        return super()._dummy_run(*args, **kwargs)

    @torch.inference_mode()
    def sample_tokens(self, grammar_output: GrammarOutput | None) -> Any:
        output = self._sample_tokens(grammar_output)
        if self.parallel_config.world_size > 1 and isinstance(output, upstream.AsyncGPUModelRunnerOutput):
            hold_until_copied(output, self._get_or_create_async_output_copy_stream())
        return output

    def _sample_tokens(self, grammar_output: GrammarOutput | None) -> Any:
        state = self.execute_model_state
        if state is None:
            output = super().sample_tokens(grammar_output)
            # The last stage lacks a state only if its forward pass failed. vLLM's engine takes None as a sign to raise
            # that failure; its runner returns the empty output, on which the scheduler fails with a KeyError instead.
            failed = output is EMPTY_MODEL_RUNNER_OUTPUT and get_pp_group().is_last_rank
            return None if failed else output
        if grammar_output is not None:
            apply_grammar_bitmask(state.scheduler_output, grammar_output, self.input_batch.req_ids, state.logits)
        step = self.plain_decode
        if step is None or not self._samples_plainly():
            return super().sample_tokens(None)
        self.execute_model_state = None
        sampler_output = self._sample(state.logits, None)
        return self._finish_plain_step(step, sampler_output, state)

    def _samples_plainly(self) -> bool:
        """Whether a plain decode step ends with its sampled tokens: no load balancing, no request inside its prompt."""
        return (
            self.use_async_scheduling
            and self.eplb_state is None
            and not envs.VLLM_COMPUTE_NANS_IN_LOGITS
            and not self.discard_request_mask.np[: self.input_batch.num_reqs].any()
        )

    def _finish_plain_step(self, step: DecodeStep, sampler_output: SamplerOutput, state: Any) -> AscendAsyncOutput:
        """Keep the samples for the next step, note one more (still unknown) token per request, and start the copy."""
        batch = self.input_batch
        num_reqs = batch.num_reqs
        sampled = sampler_output.sampled_token_ids
        req_ids, req_id_to_index = batch.req_ids.copy(), batch.req_id_to_index.copy()
        batch.prev_sampled_token_ids = sampled
        batch.prev_req_id_to_index = req_id_to_index.copy()
        ends = batch.num_tokens_no_spec[:num_reqs]
        if ends.max() >= self.max_model_len:
            raise RuntimeError(
                f"a request has {ends.max()} tokens and sampled one more; max_model_len is {self.max_model_len}"
            )
        rows = step.arange[:num_reqs]
        batch.token_ids_cpu[rows, ends] = -1
        batch.is_token_ids[rows, ends] = True
        ends += 1
        requests = self.requests
        for req_id in req_ids:
            requests[req_id].output_token_ids.append(-1)
        output = ModelRunnerOutput(
            req_ids=req_ids,
            req_id_to_index=req_id_to_index,
            sampled_token_ids=[],
            logprobs=None,
            prompt_logprobs_dict={},
            kv_connector_output=self.kv_connector_output,
            ec_connector_output=state.ec_connector_output if self.supports_mm_inputs else None,
            num_nans_in_logits={},
            cudagraph_stats=state.cudagraph_stats,
        )
        self.kv_connector_output = None
        result = AscendAsyncOutput(
            output,
            sampled,
            sampler_output.logprobs_tensors,
            [],
            self._get_or_create_async_output_copy_stream(),
            self.sampled_event,
            batch.vocab_size,
        )
        batch.set_async_sampled_token_ids(result.sampled_token_ids_cpu, result.async_copy_ready_event)
        return result
