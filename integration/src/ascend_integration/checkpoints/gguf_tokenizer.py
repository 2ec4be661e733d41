"""The byte-level BPE tokenizer of a GGUF file as transformers' `tokenizer.json` and `tokenizer_config.json`."""

from typing import Any

from gguf import TokenType
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from ascend_integration.checkpoints.errors import UnsupportedCheckpointError
from ascend_integration.checkpoints.gguf_metadata import GgufFile


def _smollm() -> pre_tokenizers.PreTokenizer:
    """Single digits, then GPT-2's pattern: llama.cpp's `LLAMA_VOCAB_PRE_TYPE_SMOLLM` (src/llama-vocab.cpp)."""
    return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), _gpt2()])


def _gpt2() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)


_PRE_TOKENIZERS = {"smollm": _smollm, "gpt-2": _gpt2}


def build_tokenizer(gguf: GgufFile) -> Tokenizer:
    """The tokenizer itself; `UnsupportedCheckpointError` for another algorithm or pre-tokenizer than listed here."""
    algorithm = gguf.require("tokenizer.ggml.model", str)
    if algorithm != "gpt2":
        raise UnsupportedCheckpointError(
            f"{gguf.path}: tokenizer {algorithm!r} is not supported; supported: 'gpt2' (byte-level BPE)"
        )
    pre = gguf.require("tokenizer.ggml.pre", str)
    if pre not in _PRE_TOKENIZERS:
        raise UnsupportedCheckpointError(
            f"{gguf.path}: pre-tokenizer {pre!r} is not supported; supported: {', '.join(sorted(_PRE_TOKENIZERS))}"
        )
    tokens = gguf.require("tokenizer.ggml.tokens", list)
    merges = [tuple(merge.split(" ", 1)) for merge in gguf.require("tokenizer.ggml.merges", list)]
    tokenizer = Tokenizer(models.BPE(vocab={token: index for index, token in enumerate(tokens)}, merges=merges))
    tokenizer.pre_tokenizer = _PRE_TOKENIZERS[pre]()
    tokenizer.decoder = decoders.ByteLevel()
    kinds = gguf.require("tokenizer.ggml.token_type", list)
    tokenizer.add_special_tokens(
        [
            AddedToken(token, special=True, normalized=False)
            for token, kind in zip(tokens, kinds, strict=True)
            if kind == TokenType.CONTROL
        ]
    )
    return tokenizer


def tokenizer_config(gguf: GgufFile) -> dict[str, Any]:
    """The content of `tokenizer_config.json`: special tokens, context length and chat template."""
    tokens = gguf.require("tokenizer.ggml.tokens", list)
    special = {
        "bos_token": gguf.optional("tokenizer.ggml.bos_token_id", int),
        "eos_token": gguf.require("tokenizer.ggml.eos_token_id", int),
        "pad_token": gguf.optional("tokenizer.ggml.padding_token_id", int),
        "unk_token": gguf.optional("tokenizer.ggml.unknown_token_id", int),
    }
    config: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        "model_max_length": gguf.require("llama.context_length", int),
        **{name: tokens[index] for name, index in special.items() if index is not None},
    }
    template = gguf.optional("tokenizer.chat_template", str)
    if template is not None:
        config["chat_template"] = template
    return config
