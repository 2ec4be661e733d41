"""A logits processor as a user writes one: a request may ask for multiples of a number alone."""

from typing import Any

import torch
from vllm import SamplingParams
from vllm.config import VllmConfig
from vllm.v1.sample.logits_processor import BatchUpdate, LogitsProcessor, process_dict_updates

REQUEST_KEY = "only_multiples_of"


class OnlyMultiples(LogitsProcessor):
    """Forbids the tokens that are no multiple of `extra_args["only_multiples_of"]`."""

    @classmethod
    def validate_params(cls, sampling_params: SamplingParams) -> None:
        divisor = (sampling_params.extra_args or {}).get(REQUEST_KEY, 1)
        if not isinstance(divisor, int) or divisor < 1:
            raise ValueError(f"{REQUEST_KEY} must be a positive integer, got {divisor!r}")

    def __init__(self, vllm_config: VllmConfig, device: torch.device, is_pin_memory: bool) -> None:
        self.divisors: dict[int, int] = {}

    def is_argmax_invariant(self) -> bool:
        return False

    def update_state(self, batch_update: BatchUpdate | None) -> None:
        def divisor(params: SamplingParams, *_: Any) -> int | None:
            return (params.extra_args or {}).get(REQUEST_KEY)

        process_dict_updates(self.divisors, batch_update, divisor)

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        for row, divisor in self.divisors.items():
            kept = logits[row, ::divisor].clone()
            logits[row] = float("-inf")
            logits[row, ::divisor] = kept
        return logits
