"""Tiny random models of the architectures that vLLM's tests ask for by name; no hub is reached.

Every stand-in has the tokenizer of SmolLM2, so a test sees text, templates and token counts of that one. Its weights
are random: what a test says of engines holds, what it says of a text's sense does not (`selection.toml` leaves that
out by name).
"""

import functools
import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
)

from ascend_integration.checkpoints.random_weights import unsettle
from ascend_integration.checkpoints.smollm2 import smollm2_checkpoint

_TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja")
_VOCABULARY = 49152
_SIZES: dict[str, Any] = {
    "vocab_size": _VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 2048,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 2,
    "tie_word_embeddings": False,
    # The value of transformers leaves a tiny model with logits so alike that they repeat one token.
    "initializer_range": 0.3,
}
# The names that older configurations have for the sizes above.
_OPT = {"ffn_dim": 128, "word_embed_proj_dim": 64}
_GPT2 = {"n_embd": 64, "n_inner": 128, "n_layer": 2, "n_head": 4, "n_positions": 1024, "tie_word_embeddings": True}
_GEMMA = {"query_pre_attn_scalar": 16, "sliding_window": 512}
LOADERS = {
    "generate": AutoModelForCausalLM,
    "embed": AutoModel,
    "classify": AutoModelForSequenceClassification,
    "token classify": AutoModelForTokenClassification,
}


@dataclass(frozen=True)
class StandIn:
    """A tiny random model under published names.

    Attributes:
        names: the names on the hub.
        model_type: transformers' name of the configuration.
        task: a key of `LOADERS`.
        context: the longest sequence.
        settings: what the configuration has beyond the common sizes, None for what it does not have.
        pooling: how sentence-transformers pools its tokens ("mean", "cls" or "lasttoken"), or None.
        longest: what sentence-transformers cuts sequences to, or None.
    """

    names: tuple[str, ...]
    model_type: str
    task: str = "generate"
    context: int = 2048
    settings: dict[str, Any] = field(default_factory=dict)
    pooling: str | None = None
    longest: int | None = None

    def save(self, folder: Path) -> None:
        """Write checkpoint, tokenizer and pooling into `folder`; the weights are the same every time."""
        torch.manual_seed(0)
        sizes = {**_SIZES, "max_position_embeddings": self.context, **self.settings}
        config = AutoConfig.for_model(
            self.model_type, **{name: value for name, value in sizes.items() if value is not None}
        )
        model = LOADERS[self.task].from_config(config)
        unsettle(model)
        model.to(torch.bfloat16 if self.task == "generate" else torch.float32).save_pretrained(folder)
        for name in _TOKENIZER_FILES:
            if (tokenizer() / name).is_file():
                shutil.copy(tokenizer() / name, folder)
        settings = json.loads((folder / "tokenizer_config.json").read_text())
        (folder / "tokenizer_config.json").write_text(json.dumps({**settings, "model_max_length": self.context}))
        if self.pooling is not None:
            _save_sentence_modules(folder, self.pooling, self.longest)


def _save_sentence_modules(folder: Path, pooling: str, longest: int | None) -> None:
    """The files by which sentence-transformers, and so vLLM, knows how tokens become an embedding."""
    kinds = ("Transformer", "Pooling", "Normalize")
    paths = ("", "1_Pooling", "2_Normalize")
    modules = [
        {"idx": index, "name": str(index), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for index, (kind, path) in enumerate(zip(kinds, paths, strict=True))
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    modes = {"mean": "mean_tokens", "cls": "cls_token", "lasttoken": "lasttoken"}
    pools = {f"pooling_mode_{name}": mode == pooling for mode, name in modes.items()}
    size = {"word_embedding_dimension": _SIZES["hidden_size"]}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({**size, **pools}))
    if longest is not None:
        cut = {"max_seq_length": longest, "do_lower_case": False}
        (folder / "sentence_bert_config.json").write_text(json.dumps(cut))


@functools.cache
def tokenizer() -> Path:
    """The folder with SmolLM2's tokenizer."""
    return smollm2_checkpoint()


_ENCODER = {"type_vocab_size": 2, "head_dim": None, "num_key_value_heads": None, "initializer_range": 0.1}
# XLM-R counts positions from the padding token's id on; transformers 5 no longer writes the kind of positions.
_ROBERTA = {**_ENCODER, "pad_token_id": 1, "type_vocab_size": 1, "position_embedding_type": "absolute"}

STAND_INS = (
    StandIn(("facebook/opt-125m",), "opt", settings=_OPT),
    StandIn(("distilbert/distilgpt2", "openai-community/gpt2"), "gpt2", context=1024, settings=_GPT2),
    StandIn(
        (
            "hmellor/tiny-random-LlamaForCausalLM",
            "meta-llama/Llama-3.2-1B",
            "meta-llama/Llama-3.2-1B-Instruct",
            "meta-llama/Meta-Llama-3-8B",
            "meta-llama/Meta-Llama-3-8B-Instruct",
            "meta-llama/Meta-Llama-3.1-8B-Instruct",
            "meta-llama/Llama-3.1-8B-Instruct",
            "meta-llama/llama-2-7b-hf",
            "TinyLlama/TinyLlama-1.1B-Chat-v1.0",
            "JackFram/llama-160m",
            "JackFram/llama-68m",
        ),
        "llama",
        context=8192,
    ),
    StandIn(("hmellor/tiny-random-Gemma2ForCausalLM",), "gemma2", context=8192, settings=_GEMMA),
    StandIn(("google/gemma-3-1b-it",), "gemma3_text", context=8192, settings=_GEMMA),
    StandIn(("bigcode/starcoder2-3b",), "starcoder2", context=8192, settings={"sliding_window": 512}),
    StandIn(("mistralai/Mistral-7B-Instruct-v0.1",), "mistral", context=8192, settings={"sliding_window": 4096}),
    StandIn(("Qwen/Qwen3-0.6B", "Qwen/Qwen3-1.7B", "Qwen/Qwen3-4B", "Qwen/Qwen3-8B"), "qwen3", context=40960),
    StandIn(
        (
            "Qwen/Qwen1.5-7B",
            "Qwen/Qwen2-0.5B",
            "Qwen/Qwen2-1.5B-Instruct",
            "Qwen/Qwen2.5-0.5B",
            "Qwen/Qwen2.5-1.5B-Instruct",
            "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B",
        ),
        "qwen2",
        context=32768,
    ),
    StandIn(("Qwen/Qwen3-Embedding-0.6B",), "qwen3", context=32768, pooling="lasttoken"),
    StandIn(("intfloat/multilingual-e5-small",), "bert", "embed", 512, _ENCODER, "mean", 512),
    StandIn(("intfloat/e5-small",), "bert", "embed", 512, _ENCODER, "mean", 512),
    StandIn(("sentence-transformers/all-MiniLM-L12-v2",), "bert", "embed", 512, _ENCODER, "mean", 128),
    StandIn(("BAAI/bge-base-en-v1.5",), "bert", "embed", 512, _ENCODER, "cls", 512),
    StandIn(
        ("Snowflake/snowflake-arctic-embed-m-v1.5",),
        "bert",
        "embed",
        512,
        {**_ENCODER, "matryoshka_dimensions": [32]},
        "cls",
        512,
    ),
    StandIn(("jason9693/Qwen2.5-1.5B-apeach",), "qwen2", "classify", 8192, {"num_labels": 2}),
    StandIn(("tomaarsen/Qwen3-Reranker-0.6B-seq-cls",), "qwen3", "classify", 8192, {"num_labels": 1}),
    StandIn(("nie3e/sentiment-polish-gpt2-small",), "gpt2", "classify", 1024, {**_GPT2, "num_labels": 3}),
    StandIn(("cross-encoder/ms-marco-MiniLM-L-6-v2",), "bert", "classify", 512, {**_ENCODER, "num_labels": 1}),
    StandIn(("BAAI/bge-reranker-base",), "xlm-roberta", "classify", 514, {**_ROBERTA, "num_labels": 1}),
    StandIn(
        ("papluca/xlm-roberta-base-language-detection",),
        "xlm-roberta",
        "classify",
        514,
        {**_ROBERTA, "num_labels": 20},
    ),
    StandIn(("boltuix/NeuroBERT-NER",), "bert", "token classify", 512, {**_ENCODER, "num_labels": 9}),
)
