"""Low-rank adapters for tiny models, as PEFT saves them, and the models that have them merged."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM

TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


def save_adapter(base: Path, folder: Path, merged: Path, rank: int, alpha: float, seed: int) -> Path:
    """Write an adapter on every linear layer of `base` into `folder`, and the model with it merged into `merged`.

    `merged` has `W + alpha / rank * B @ A` for every weight `W`, which is what PEFT documents an adapter to mean.
    """
    draw = torch.Generator().manual_seed(seed)
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    tensors: dict[str, torch.Tensor] = {}
    for name, layer in model.named_modules():
        if name.rsplit(".", 1)[-1] in TARGETS:
            outputs, inputs = layer.weight.shape
            down = torch.randn(rank, inputs, generator=draw) * 0.1
            up = torch.randn(outputs, rank, generator=draw) * 0.1
            tensors[f"base_model.model.{name}.lora_A.weight"] = down
            tensors[f"base_model.model.{name}.lora_B.weight"] = up
            layer.weight.data += alpha / rank * up @ down
    model.save_pretrained(merged)
    folder.mkdir(parents=True)
    save_file(tensors, folder / "adapter_model.safetensors")
    config: dict[str, Any] = {
        "peft_type": "LORA",
        "base_model_name_or_path": str(base),
        "task_type": "CAUSAL_LM",
        "r": rank,
        "lora_alpha": alpha,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": list(TARGETS),
    }
    (folder / "adapter_config.json").write_text(json.dumps(config))
    return folder
