"""A tiny random model, saved as transformers saves a real one.

Weights are drawn with a spread (`initializer_range` 0.3) at which a three-layer model neither repeats itself nor has
near ties between the two best tokens, so that a wrong key, position or mask shows within a few tokens.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    PreTrainedModel,
)

from ascend_integration.checkpoints.random_weights import unsettle
from ascend_integration.oracle.sinks import SINKS_ATTENTION, add_sinks

VOCAB_SIZE = 512
_COMMON: dict[str, Any] = {
    "vocab_size": VOCAB_SIZE,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "initializer_range": 0.3,
    "tie_word_embeddings": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
WINDOW = 24
MIXED_LAYERS = ["sliding_attention", "full_attention", "sliding_attention"]


@dataclass(frozen=True)
class TinyModel:
    """A family's name, transformers' `model_type` and what its configuration has beyond the common sizes.

    `seed` is one with which no greedy token of the equality tests is a near tie; their oracle test asserts that.
    """

    name: str
    model_type: str
    shows: str
    seed: int
    settings: dict[str, Any] = field(default_factory=dict)
    sinks: bool = False

    def save(self, folder: Path) -> Path:
        """Write the model into `folder` and return it; the weights are the same every time."""
        torch.manual_seed(self.seed)
        config = AutoConfig.for_model(self.model_type, **{**_COMMON, **self.settings})
        model: PreTrainedModel = AutoModelForCausalLM.from_config(
            config, attn_implementation=SINKS_ATTENTION if self.sinks else "eager"
        )
        if self.sinks:
            add_sinks(model)
        unsettle(model)
        model.save_pretrained(folder)
        if self.sinks:
            # vLLM finds its own class by this name; transformers had written the dense model's.
            model.config.architectures = ["SinksForCausalLM"]
            model.config.save_pretrained(folder)
        return folder
