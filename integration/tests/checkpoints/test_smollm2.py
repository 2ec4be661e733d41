"""SmolLM2's converted folder against transformers' own GGUF loader and against the published tokenizer rules."""

import regex
import torch
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

from ascend_integration.checkpoints import smollm2_checkpoint
from ascend_integration.checkpoints.smollm2 import smollm2_gguf

# llama.cpp, src/llama-vocab.cpp, LLAMA_VOCAB_PRE_TYPE_SMOLLM: applied one after the other.
SMOLLM_PATTERNS = [
    r"\p{N}",
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)",
]
TEXTS = [
    "What is the capital of France?",
    "In 1984, it's 12.5% — don't you think?  Two  spaces\n\nand a tab\there.",
    "Ünïcödé, 日本語 and emoji 🙂 42",
    "def f(x):\n    return x**2 + 10\n",
]


def test_weights_are_those_of_transformers_gguf_loader():
    # from_pretrained(gguf_file=...) asks for accelerate and then calls this.
    config = AutoConfig.from_pretrained(smollm2_checkpoint())
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    expected = load_gguf_checkpoint(smollm2_gguf(), return_tensors=True, model_to_load=model)
    ours = load_file(smollm2_checkpoint() / "model.safetensors")
    assert ours.keys() == expected["tensors"].keys()
    assert all(torch.equal(ours[name], weight.to(torch.bfloat16)) for name, weight in expected["tensors"].items())
    for key in ("hidden_size", "num_hidden_layers", "num_key_value_heads", "tie_word_embeddings", "vocab_size"):
        assert expected["config"][key] == getattr(config, key), key


def split_by_patterns(text: str) -> list[str]:
    pieces = [text]
    for pattern in SMOLLM_PATTERNS:
        pieces = [part for piece in pieces for part in split_keeping_rest(pattern, piece)]
    return pieces


def split_keeping_rest(pattern: str, text: str) -> list[str]:
    """Matches and what lies between them, in order, as llama.cpp's `unicode_regex_split` gives them."""
    parts, end = [], 0
    for match in regex.finditer(pattern, text):
        parts += [text[end : match.start()], match.group()]
        end = match.end()
    return [part for part in [*parts, text[end:]] if part]


def test_pretokenizer_splits_as_llama_cpp():
    tokenizer = AutoTokenizer.from_pretrained(smollm2_checkpoint())
    for text in TEXTS:
        spans = [span for _, span in tokenizer.backend_tokenizer.pre_tokenizer.pre_tokenize_str(text)]
        assert [text[start:end] for start, end in spans] == split_by_patterns(text)


def test_text_survives_the_tokenizer():
    tokenizer = AutoTokenizer.from_pretrained(smollm2_checkpoint())
    for text in TEXTS:
        assert tokenizer.decode(tokenizer(text)["input_ids"]) == text


def test_chat_template_is_the_published_one():
    # Model card of HuggingFaceTB/SmolLM2-135M-Instruct: ChatML with a default system message.
    tokenizer = AutoTokenizer.from_pretrained(smollm2_checkpoint())
    text = tokenizer.apply_chat_template(
        [{"role": "user", "content": "Hi"}], tokenize=False, add_generation_prompt=True
    )
    assert text == (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    )


def test_second_call_finds_the_first_ones_folder(monkeypatch):
    from ascend_integration.checkpoints import convert

    folder = smollm2_checkpoint()

    def refuse(*_):
        raise AssertionError("converted again")

    monkeypatch.setattr(convert, "convert_gguf", refuse)
    assert smollm2_checkpoint() == folder
