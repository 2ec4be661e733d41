"""The GGUF converter on small files from the gguf package's writer: exact weights, and refusals that say why."""

from pathlib import Path

import numpy as np
import pytest
import torch
from gguf import GGUFWriter, TokenType
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

from ascend_integration.checkpoints.convert import convert_gguf
from ascend_integration.checkpoints.errors import CheckpointError, UnsupportedCheckpointError

CONFIG = LlamaConfig(
    vocab_size=260,
    hidden_size=32,
    intermediate_size=48,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=64,
    rms_norm_eps=1e-5,
    rope_theta=50000.0,
    tie_word_embeddings=False,
)
SHORT_NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
TOP_NAMES = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}
# Two special tokens, the 256 letters that byte-level BPE maps bytes to are not needed: a few suffice, and one merge.
TOKENS = ["<s>", "</s>", "a", "b", "ab", *(f"<unused{index}>" for index in range(255))]


@pytest.fixture(scope="module")
def llama() -> LlamaForCausalLM:
    torch.manual_seed(0)
    return LlamaForCausalLM(CONFIG)


def permuted(weight: np.ndarray, heads: int) -> np.ndarray:
    """llama.cpp's `LlamaModel.permute` (convert_hf_to_gguf.py)."""
    return (
        weight.reshape(heads, 2, weight.shape[0] // heads // 2, *weight.shape[1:]).swapaxes(1, 2).reshape(weight.shape)
    )


def write_gguf(
    path: Path,
    model: LlamaForCausalLM,
    architecture: str = "llama",
    tokenizer: str = "gpt2",
    pre: str = "smollm",
    extra: dict[str, np.ndarray] | None = None,
    leave_out: str | None = None,
    rope_scaling: bool = False,
) -> Path:
    writer = GGUFWriter(path, architecture)
    writer.add_embedding_length(CONFIG.hidden_size)
    writer.add_feed_forward_length(CONFIG.intermediate_size)
    writer.add_block_count(CONFIG.num_hidden_layers)
    writer.add_head_count(CONFIG.num_attention_heads)
    writer.add_head_count_kv(CONFIG.num_key_value_heads)
    writer.add_context_length(CONFIG.max_position_embeddings)
    writer.add_layer_norm_rms_eps(CONFIG.rms_norm_eps)
    writer.add_rope_freq_base(50000.0)
    if rope_scaling:
        writer.add_string(f"{architecture}.rope.scaling.type", "yarn")
    writer.add_tokenizer_model(tokenizer)
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(TOKENS)
    writer.add_token_types([TokenType.CONTROL] * 2 + [TokenType.NORMAL] * (len(TOKENS) - 2))
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_chat_template("{% for message in messages %}<s>{{ message['content'] }}</s>{% endfor %}")
    for name, weight in model.state_dict().items():
        values = weight.numpy()
        if name in TOP_NAMES:
            short = TOP_NAMES[name]
        else:
            _, _, layer, *rest, _ = name.split(".")
            short = f"blk.{layer}.{SHORT_NAMES['.'.join(rest)]}.weight"
            if "q_proj" in name:
                values = permuted(values, CONFIG.num_attention_heads)
            if "k_proj" in name:
                values = permuted(values, CONFIG.num_key_value_heads)
        if short != leave_out:
            writer.add_tensor(short, values)
    for name, values in (extra or {}).items():
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture
def target(tmp_path: Path) -> Path:
    folder = tmp_path / "converted"
    folder.mkdir()
    return folder


def test_weights_and_configuration_survive(tmp_path, target, llama):
    convert_gguf(write_gguf(tmp_path / "m.gguf", llama), target, torch.float32)
    loaded = AutoModelForCausalLM.from_pretrained(target, dtype=torch.float32)
    original = llama.state_dict()
    assert loaded.state_dict().keys() == original.keys()
    assert all(torch.equal(weight, original[name]) for name, weight in loaded.state_dict().items())
    for key in ("num_key_value_heads", "head_dim", "rms_norm_eps", "rope_parameters", "max_position_embeddings"):
        assert getattr(loaded.config, key) == getattr(CONFIG, key), key


def test_tokenizer_merges_and_knows_special_tokens(tmp_path, target, llama):
    convert_gguf(write_gguf(tmp_path / "m.gguf", llama), target)
    tokenizer = AutoTokenizer.from_pretrained(target)
    assert tokenizer("<s>abb</s>")["input_ids"] == [0, 4, 3, 1]
    assert tokenizer.apply_chat_template([{"role": "user", "content": "ab"}])["input_ids"] == [0, 4, 1]
    assert (tokenizer.bos_token, tokenizer.eos_token) == ("<s>", "</s>")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architecture": "gemma"}, "architecture 'gemma' is not supported; supported: 'llama'"),
        ({"tokenizer": "llama"}, "tokenizer 'llama' is not supported; supported: 'gpt2'"),
        ({"pre": "qwen2"}, "pre-tokenizer 'qwen2' is not supported; supported: gpt-2, smollm"),
        ({"rope_scaling": True}, "rotary scaling 'yarn' is not supported"),
        ({"extra": {"blk.0.attn_q.bias": np.zeros(32, np.float32)}}, "tensor 'blk.0.attn_q.bias' has no counterpart"),
    ],
    ids=["architecture", "tokenizer", "pre-tokenizer", "rope-scaling", "bias"],
)
def test_unsupported_files_are_refused_before_anything_is_written(tmp_path, target, llama, changes, message):
    source = write_gguf(tmp_path / "m.gguf", llama, **changes)
    with pytest.raises(UnsupportedCheckpointError, match=message):
        convert_gguf(source, target)
    assert list(target.iterdir()) == []


def test_a_missing_tensor_is_named(tmp_path, target, llama):
    source = write_gguf(tmp_path / "m.gguf", llama, leave_out="blk.1.ffn_up.weight")
    with pytest.raises(CheckpointError, match=r"1 tensors are missing, the first is 'model\.layers\.1\.mlp\.up_proj"):
        convert_gguf(source, target)


@pytest.mark.parametrize("content", [b"", b"not a model", b"GGUF"], ids=["empty", "text", "cut-short"])
def test_a_damaged_file_is_named(tmp_path, target, content):
    source = tmp_path / "broken.gguf"
    source.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"broken\.gguf is not a readable GGUF file"):
        convert_gguf(source, target)


def test_an_absent_file_is_named(tmp_path, target):
    with pytest.raises(CheckpointError, match=r"absent\.gguf does not exist"):
        convert_gguf(tmp_path / "absent.gguf", target)
