"""Greedy continuations and logits of a checkpoint, as transformers computes them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import torch
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from ascend_integration.oracle.sinks import SINKS_ATTENTION, add_sinks


@dataclass(frozen=True)
class Greedy:
    """A greedy continuation; `gap` is the smallest distance of its best logit to the second best."""

    tokens: list[int]
    gap: float


class Reference:
    """transformers' model in `compute_dtype`, its weights first rounded to `weight_dtype`, on the CPU."""

    def __init__(self, model: PreTrainedModel) -> None:
        self.model = model.eval()

    @classmethod
    def load(
        cls, folder: Path, compute_dtype: torch.dtype = torch.float32, weight_dtype: torch.dtype = torch.float32
    ) -> Self:
        """Read a checkpoint folder; models with sinks are recognised by their architecture's name."""
        config = AutoConfig.from_pretrained(folder)
        if config.architectures == ["SinksForCausalLM"]:
            model = AutoModelForCausalLM.from_config(config, attn_implementation=SINKS_ATTENTION, dtype=weight_dtype)
            add_sinks(model)
            model.load_state_dict(load_file(folder / "model.safetensors"))
            model.to(weight_dtype)
        else:
            model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager", dtype=weight_dtype)
        return cls(model.to(compute_dtype))

    @torch.inference_mode()
    def greedy(self, prompt: Sequence[int], new_tokens: int) -> Greedy:
        """Exactly `new_tokens` tokens after `prompt`, with the model's own cache; end-of-sequence does not stop it."""
        output = self.model(torch.tensor([list(prompt)]), use_cache=True)
        tokens: list[int] = []
        gap = float("inf")
        while True:
            best = output.logits[0, -1].float().topk(2)
            gap = min(gap, float(best.values[0] - best.values[1]))
            tokens.append(int(best.indices[0]))
            if len(tokens) == new_tokens:
                return Greedy(tokens, gap)
            output = self.model(torch.tensor([tokens[-1:]]), cache=output.past_key_values, use_cache=True)

    @torch.inference_mode()
    def greedy_batch(self, prompts: Sequence[Sequence[int]], new_tokens: int, pad_token: int) -> list[Greedy]:
        """As `greedy` for all prompts at once, through transformers' `generate` with padding on the left."""
        longest = max(map(len, prompts))
        ids = torch.tensor([[pad_token] * (longest - len(prompt)) + list(prompt) for prompt in prompts])
        mask = torch.tensor([[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts])
        output = self.model.generate(
            ids,
            attention_mask=mask,
            do_sample=False,
            max_new_tokens=new_tokens,
            min_new_tokens=new_tokens,
            eos_token_id=None,
            pad_token_id=pad_token,
            return_dict_in_generate=True,
            output_logits=True,
        )
        best = torch.stack(output.logits, dim=1).float().topk(2).values
        gaps = (best[..., 0] - best[..., 1]).amin(-1)
        rows = output.sequences[:, longest:].tolist()
        return [Greedy(row, float(gap)) for row, gap in zip(rows, gaps, strict=True)]

    @torch.inference_mode()
    def logits(self, tokens: Sequence[int]) -> torch.Tensor:
        """Logits `[len(tokens), vocabulary]` in float32; row i scores the token that follows `tokens[i]`."""
        return self.model(torch.tensor([list(tokens)]), use_cache=False).logits[0].float()
