"""vLLM's V1 model runner on the NPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import vllm.v1.worker.gpu_model_runner as upstream
from vllm.config import VllmConfig
from vllm.compilation.cuda_graph import CUDAGraphWrapper
from vllm.config import CUDAGraphMode
from vllm.v1.kv_cache_interface import KVCacheConfig
from vllm.v1.sample.rejection_sampler import RejectionSampler
from vllm.v1.sample.sampler import Sampler

from vllm_ascend.graph.wrapper import ACLGraphWrapper
from vllm_ascend.sample.bitmask import apply_grammar_bitmask
from vllm_ascend.sample.sampler import AscendSampler
from vllm_ascend.worker.block_table import adopt

if TYPE_CHECKING:
    from vllm.v1.core.sched.output import GrammarOutput


class AscendModelRunner(upstream.GPUModelRunner):
    """The model runner of one NPU.

    Three seams let other components replace parts without patches: :meth:`make_sampler`, :meth:`make_proposer` and
    :meth:`make_rejection_sampler`; each is called once, at the end of construction.
    """

    def __init__(self, vllm_config: VllmConfig, device: torch.device) -> None:
        super().__init__(vllm_config, device)
        self.cascade_attn_enabled = False
        adopt(self.input_batch.block_table)
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

    def load_model(self, load_dummy_weights: bool = False) -> None:
        super().load_model(load_dummy_weights)
        if type(self.model) is CUDAGraphWrapper:
            self.model = ACLGraphWrapper(self.model.unwrap(), self.vllm_config, CUDAGraphMode.FULL)

    @torch.inference_mode()
    def sample_tokens(self, grammar_output: GrammarOutput | None) -> Any:
        state = self.execute_model_state
        if grammar_output is not None and state is not None:
            apply_grammar_bitmask(state.scheduler_output, grammar_output, self.input_batch.req_ids, state.logits)
            grammar_output = None
        return super().sample_tokens(grammar_output)
