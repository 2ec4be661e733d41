"""vLLM's sampler for the NPU: the same semantics without vLLM's Triton kernels, and a short path for greedy steps."""

from __future__ import annotations

import torch
from vllm.config.model import LogprobsMode
from vllm.v1.outputs import SamplerOutput
from vllm.v1.sample.logits_processor import LogitBiasLogitsProcessor, LogitsProcessor, MinTokensLogitsProcessor
from vllm.v1.sample.metadata import SamplingMetadata
from vllm.v1.sample.ops.topk_topp_sampler import TopKTopPSampler, apply_top_k_top_p_pytorch, random_sample
from vllm.v1.sample.sampler import Sampler


class AscendTopKTopPSampler(TopKTopPSampler):
    """Top-k and top-p filtering and random sampling with torch operators.

    vLLM's own filter is a Triton kernel that triton-ascend does not compile; the torch form defines the same result.
    """

    def __init__(self, logprobs_mode: LogprobsMode = "raw_logprobs", use_fp64_gumbel: bool = False) -> None:
        super().__init__(logprobs_mode, use_fp64_gumbel)
        self.forward = self.forward_native

    def forward_native(
        self,
        logits: torch.Tensor,
        generators: dict[int, torch.Generator],
        k: torch.Tensor | None,
        p: torch.Tensor | None,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Filter and sample.

        Args:
            logits: float32 ``[requests, vocabulary]``; may be overwritten.
            generators: row to random generator, for the requests that have a seed.
            k, p: per-request limits ``[requests]``; None where no request has one.

        Returns:
            int64 token ids ``[requests]``, and the processed logits or log-probabilities if the mode asks for them.
        """
        if k is not None or p is not None:
            logits = apply_top_k_top_p_pytorch(logits, k, p)
        processed = None
        if self.logprobs_mode == "processed_logits":
            processed = logits
        elif self.logprobs_mode == "processed_logprobs":
            processed = logits.log_softmax(dim=-1)
        probabilities = logits.softmax(dim=-1)
        return random_sample(probabilities, generators, self.use_fp64_gumbel), processed


class AscendSampler(Sampler):
    """vLLM's sampler with the NPU's top-k/top-p and a fast path."""

    def __init__(self, logprobs_mode: LogprobsMode = "raw_logprobs", use_fp64_gumbel: bool = False) -> None:
        super().__init__(logprobs_mode, use_fp64_gumbel)
        self.topk_topp_sampler = AscendTopKTopPSampler(logprobs_mode, use_fp64_gumbel)

    def forward(
        self,
        logits: torch.Tensor,
        sampling_metadata: SamplingMetadata,
        predict_bonus_token: bool = False,
        logprobs_mode_override: LogprobsMode | None = None,
    ) -> SamplerOutput:
        """Sample one token per row of ``logits``; see :class:`vllm.v1.sample.sampler.Sampler`."""
        if is_plain_greedy(sampling_metadata):
            sampled = logits.argmax(dim=-1, keepdim=True)
            return SamplerOutput(sampled_token_ids=sampled.to(torch.int32), logprobs_tensors=None)
        return super().forward(logits, sampling_metadata, predict_bonus_token, logprobs_mode_override)


def is_plain_greedy(metadata: SamplingMetadata) -> bool:
    """Whether the largest logit decides and nothing else is wanted: no processor, penalty, mask or log-probability."""
    holder = metadata.thinking_budget_state_holder
    return (
        metadata.all_greedy
        and metadata.no_penalties
        and metadata.max_num_logprobs is None
        and not metadata.logprob_token_ids
        and metadata.allowed_token_ids_mask is None
        and not metadata.bad_words_token_ids
        and not any(is_active(processor) for processor in metadata.logitsprocs.non_argmax_invariant)
        and (holder is None or not holder.has_tracked_requests())
    )


def is_active(processor: LogitsProcessor) -> bool:
    """Whether a logits processor changes this step's logits; one that is not vLLM's own always may."""
    if type(processor) is LogitBiasLogitsProcessor:
        return bool(processor.biases)
    if type(processor) is MinTokensLogitsProcessor:
        return bool(processor.min_toks)
    return True
