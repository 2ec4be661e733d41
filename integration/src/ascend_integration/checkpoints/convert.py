"""A GGUF file of the llama architecture into a folder that transformers and vLLM load."""

import json
from pathlib import Path

import torch
from safetensors.torch import save_file

from ascend_integration.checkpoints.gguf_llama import llama_config, llama_state_dict, require_llama
from ascend_integration.checkpoints.gguf_metadata import GgufFile
from ascend_integration.checkpoints.gguf_tokenizer import build_tokenizer, tokenizer_config


def convert_gguf(source: Path, target: Path, dtype: torch.dtype = torch.bfloat16) -> None:
    """Write `config.json`, `generation_config.json`, the tokenizer and `model.safetensors` of `source` into `target`.

    `target` must exist and be empty. Raises `CheckpointError` for a damaged file and `UnsupportedCheckpointError`
    for a file the converter does not cover, in both cases before anything is written.
    """
    gguf = GgufFile(source)
    require_llama(gguf)
    tokenizer = build_tokenizer(gguf)
    config = llama_config(gguf, dtype)
    weights = llama_state_dict(gguf, config, dtype)

    tokenizer.save(str(target / "tokenizer.json"))
    _write_json(target / "tokenizer_config.json", tokenizer_config(gguf))
    _write_json(target / "config.json", config)
    token_ids = ("bos_token_id", "eos_token_id", "pad_token_id")
    _write_json(target / "generation_config.json", {key: config[key] for key in token_ids if config[key] is not None})
    save_file(weights, target / "model.safetensors", metadata={"format": "pt"})


def _write_json(path: Path, content: dict[str, object]) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
