"""What transformers computes for the tokens of one prompt, where a model pools instead of generating."""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

import torch
import torch.nn.functional as F
from transformers import PreTrainedModel

from ascend_integration.checkpoints.pooling import PoolingModel, Task


class PoolingReference:
    """A pooling model of transformers in float32 on the CPU, one prompt at a time."""

    def __init__(self, family: PoolingModel, model: PreTrainedModel) -> None:
        self.family = family
        self.model = model.eval()

    @classmethod
    def load(cls, family: PoolingModel, folder: Path) -> Self:
        """Read a checkpoint folder with transformers' class for it."""
        return cls(family, family.loader.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32))

    @torch.inference_mode()
    def __call__(self, prompt: Sequence[int]) -> torch.Tensor:
        """The unit embedding `[hidden]`, class logits `[labels]`, or logits of every token `[tokens, labels]`."""
        ids = torch.tensor([list(prompt)])
        if self.family.task is not Task.EMBED:
            return self.model(ids).logits[0]
        hidden = self.model.base_model(ids).last_hidden_state[0]
        return F.normalize(hidden[-1 if self.family.last_token else 0], dim=-1)
