"""Tiny random models that give embeddings, classes, scores or rewards, saved as transformers saves a real one."""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    PreTrainedModel,
)

from ascend_integration.checkpoints.random_weights import unsettle
from ascend_integration.checkpoints.tokenizers import SPECIAL, save_word_tokenizer
from ascend_integration.oracle.reward import Qwen2ForRewardModel

VOCAB_SIZE = 512
_COMMON: dict[str, Any] = {
    "vocab_size": VOCAB_SIZE,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "max_position_embeddings": 514,
    "initializer_range": 0.1,
    "pad_token_id": 0,
}
_DECODER = {"num_key_value_heads": 2, "head_dim": 32, "tie_word_embeddings": False}


class Task(StrEnum):
    """What is asked of a pooling model; the values are vLLM's names."""

    EMBED = "embed"
    CLASSIFY = "classify"
    TOKEN_CLASSIFY = "token_classify"


@dataclass(frozen=True)
class PoolingModel:
    """A tiny pooling model.

    Attributes:
        name: how tests call it.
        loader: transformers' class that makes and reads it.
        model_type: transformers' name of its configuration.
        task: what is asked of it.
        feature: what it stands for in the table of what is supported.
        settings: what its configuration has beyond the common sizes.
        last_token: whether an embedding is the last token's hidden state, not the first one's.
        engine: arguments of `vllm.LLM` that it needs.
    """

    name: str
    loader: Any
    model_type: str
    task: Task
    feature: str
    settings: dict[str, Any] = field(default_factory=dict)
    last_token: bool = False
    engine: dict[str, Any] = field(default_factory=dict)

    def save(self, folder: Path) -> Path:
        """Write the model into `folder` and return it; the weights are the same every time."""
        torch.manual_seed(0)
        config = AutoConfig.for_model(self.model_type, **{**_COMMON, **self.settings})
        make = self.loader if issubclass(self.loader, PreTrainedModel) else self.loader.from_config
        model: PreTrainedModel = make(config)
        unsettle(model)
        model.save_pretrained(folder)
        # vLLM asks for one even where prompts are token ids.
        save_word_tokenizer([f"w{index}" for index in range(VOCAB_SIZE - len(SPECIAL))], folder)
        return folder


_FAMILIES = (
    PoolingModel("bert", AutoModel, "bert", Task.EMBED, "embedding of an encoder"),
    PoolingModel(
        "xlm-roberta",
        AutoModel,
        "xlm-roberta",
        Task.EMBED,
        "embedding of an encoder",
        # As published configurations have it; transformers 5 writes it no more, and vLLM reads it.
        {"pad_token_id": 1, "position_embedding_type": "absolute"},
    ),
    PoolingModel(
        "qwen3-embedding",
        AutoModelForCausalLM,
        "qwen3",
        Task.EMBED,
        "embedding of a decoder",
        _DECODER,
        last_token=True,
        engine={"runner": "pooling"},
    ),
    PoolingModel(
        "xlm-roberta-classifier",
        AutoModelForSequenceClassification,
        "xlm-roberta",
        Task.CLASSIFY,
        "sequence classification",
        {"pad_token_id": 1, "num_labels": 3},
    ),
    PoolingModel(
        "qwen3-classifier",
        AutoModelForSequenceClassification,
        "qwen3",
        Task.CLASSIFY,
        "sequence classification",
        {**_DECODER, "num_labels": 3},
    ),
    PoolingModel(
        "bert-token-classifier",
        AutoModelForTokenClassification,
        "bert",
        Task.TOKEN_CLASSIFY,
        "token classification",
        {"num_labels": 5},
    ),
    PoolingModel(
        "qwen3-token-classifier",
        AutoModelForTokenClassification,
        "qwen3",
        Task.TOKEN_CLASSIFY,
        "token classification",
        {**_DECODER, "num_labels": 5},
    ),
    PoolingModel(
        "qwen2-reward",
        Qwen2ForRewardModel,
        "qwen2",
        Task.TOKEN_CLASSIFY,
        "reward of every token",
        {**_DECODER, "num_labels": 1},
    ),
)
POOLING_MODELS = {model.name: model for model in _FAMILIES}
