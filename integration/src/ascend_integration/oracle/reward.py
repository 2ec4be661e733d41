"""Qwen2's reward model, which transformers does not have: its own Qwen2 under the published two-layer head.

Qwen/Qwen2.5-Math-RM-72B publishes the head as code beside its weights: `score = Linear(ReLU(Linear(hidden)))` on the
last hidden state of every token.
"""

import torch
from torch import nn
from transformers import Qwen2Config, Qwen2Model, Qwen2PreTrainedModel
from transformers.modeling_outputs import TokenClassifierOutput


class Qwen2ForRewardModel(Qwen2PreTrainedModel):
    """Scores `[batch, tokens, num_labels]`; named as published, so that vLLM finds its own class by this name."""

    def __init__(self, config: Qwen2Config) -> None:
        super().__init__(config)
        self.model = Qwen2Model(config)
        hidden = config.hidden_size
        self.score = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, config.num_labels))
        self.post_init()

    def forward(self, input_ids: torch.Tensor, **inputs: object) -> TokenClassifierOutput:
        return TokenClassifierOutput(logits=self.score(self.model(input_ids, **inputs).last_hidden_state))
