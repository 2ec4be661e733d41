"""GGUF weights and hyper-parameters of the llama architecture, in the names and layouts of transformers.

Names: the GGUF specification (ggml-org/ggml, docs/gguf.md, "Standardized tensor names") against transformers'
`LlamaForCausalLM`. Layout: llama.cpp's converter stores the rows of `attn_q` and `attn_k` so that the two halves of a
rotary pair are neighbours (convert_hf_to_gguf.py, `LlamaModel.permute`); transformers keeps them half a head apart.
"""

import re
from typing import Any

import numpy as np
import torch
from gguf.quants import dequantize

from ascend_integration.checkpoints.errors import CheckpointError, UnsupportedCheckpointError
from ascend_integration.checkpoints.gguf_metadata import GgufFile

_TOP_LEVEL = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_PER_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_LAYER_TENSOR = re.compile(r"blk\.(\d+)\.(\w+)\.weight")


def require_llama(gguf: GgufFile) -> None:
    """Refuse every file this module would convert wrongly: other architectures, experts, scaled rotary embedding."""
    architecture = gguf.require("general.architecture", str)
    if architecture != "llama":
        raise UnsupportedCheckpointError(
            f"{gguf.path}: architecture {architecture!r} is not supported; supported: 'llama'. "
            f"Convert such a model with transformers (AutoModelForCausalLM.from_pretrained(..., gguf_file=...)) instead"
        )
    if gguf.optional("llama.expert_count", int):
        raise UnsupportedCheckpointError(f"{gguf.path}: llama files with experts are not supported, only dense ones")
    scaling = gguf.optional("llama.rope.scaling.type", str)
    if scaling not in (None, "none") or any(t.name == "rope_freqs.weight" for t in gguf.tensors):
        raise UnsupportedCheckpointError(
            f"{gguf.path}: rotary scaling {scaling or 'rope_freqs'!r} is not supported, only plain rotary embedding"
        )


def llama_config(gguf: GgufFile, dtype: torch.dtype) -> dict[str, Any]:
    """The content of transformers' `config.json` for the file; `dtype` is what the weights will be stored in."""
    hidden_size = gguf.require("llama.embedding_length", int)
    heads = gguf.require("llama.attention.head_count", int)
    if hidden_size % heads:
        raise CheckpointError(f"{gguf.path}: hidden size {hidden_size} is not a multiple of {heads} attention heads")
    rope_theta = gguf.optional("llama.rope.freq_base", float)
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "hidden_size": hidden_size,
        "intermediate_size": gguf.require("llama.feed_forward_length", int),
        "num_hidden_layers": gguf.require("llama.block_count", int),
        "num_attention_heads": heads,
        "num_key_value_heads": gguf.optional("llama.attention.head_count_kv", int) or heads,
        "head_dim": gguf.optional("llama.attention.key_length", int) or hidden_size // heads,
        "max_position_embeddings": gguf.require("llama.context_length", int),
        # GGUF holds a float32; nine decimals give back the number that was written.
        "rms_norm_eps": round(gguf.require("llama.attention.layer_norm_rms_epsilon", float), 9),
        "rope_theta": 10000.0 if rope_theta is None else rope_theta,
        "vocab_size": len(gguf.require("tokenizer.ggml.tokens", list)),
        "tie_word_embeddings": all(tensor.name != "output.weight" for tensor in gguf.tensors),
        "attention_bias": False,
        "mlp_bias": False,
        "bos_token_id": gguf.optional("tokenizer.ggml.bos_token_id", int),
        "eos_token_id": gguf.require("tokenizer.ggml.eos_token_id", int),
        "pad_token_id": gguf.optional("tokenizer.ggml.padding_token_id", int),
        "dtype": str(dtype).removeprefix("torch."),
    }


def llama_state_dict(gguf: GgufFile, config: dict[str, Any], dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """Every tensor of the file, dequantised in float32, rounded once to `dtype`, under transformers' name.

    Raises `UnsupportedCheckpointError` on a tensor with no counterpart, `CheckpointError` when a layer is incomplete.
    """
    heads_of = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    weights: dict[str, torch.Tensor] = {}
    for tensor in gguf.tensors:
        # gguf lists the fastest-varying dimension first.
        shape = tuple(int(size) for size in reversed(tensor.shape))
        values = np.asarray(dequantize(tensor.data, tensor.tensor_type), dtype=np.float32).reshape(shape)
        layer = _LAYER_TENSOR.fullmatch(tensor.name)
        if tensor.name in _TOP_LEVEL:
            name = _TOP_LEVEL[tensor.name]
        elif layer and layer[2] in _PER_LAYER:
            name = f"model.layers.{layer[1]}.{_PER_LAYER[layer[2]]}.weight"
            if layer[2] in heads_of:
                values = _split_rotary_pairs(values, heads_of[layer[2]])
        else:
            raise UnsupportedCheckpointError(
                f"{gguf.path}: tensor {tensor.name!r} has no counterpart in a dense llama model without biases"
            )
        weights[name] = torch.from_numpy(np.array(values, order="C")).to(dtype)  # a copy: the file is mapped read-only
    _require_complete(gguf, config, weights)
    return weights


def _split_rotary_pairs(weight: np.ndarray, heads: int) -> np.ndarray:
    """Rows of a projection `[heads * head_dim, hidden]` from neighbouring rotary pairs to halves of a head."""
    rows, columns = weight.shape
    return weight.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


def _require_complete(gguf: GgufFile, config: dict[str, Any], weights: dict[str, torch.Tensor]) -> None:
    expected = {"model.embed_tokens.weight", "model.norm.weight"} | {
        f"model.layers.{layer}.{name}.weight"
        for layer in range(config["num_hidden_layers"])
        for name in _PER_LAYER.values()
    }
    if missing := sorted(expected - weights.keys()):
        raise CheckpointError(f"{gguf.path}: {len(missing)} tensors are missing, the first is {missing[0]!r}")
