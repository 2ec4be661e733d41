"""A tiny random Idefics3 with the processor that turns text and images into its inputs."""

from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    AutoModelForImageTextToText,
    Idefics3Config,
    Idefics3Processor,
    PreTrainedTokenizerFast,
)
from transformers.models.idefics3.image_processing_pil_idefics3 import Idefics3ImageProcessorPil

from ascend_integration.checkpoints.random_weights import unsettle

IMAGE = "<image>"
_SPECIAL = ["<pad>", "<s>", "</s>"]
_TILES = [f"<row_{row}_col_{column}>" for row in (1, 2) for column in (1, 2)]
_MARKERS = [IMAGE, "<fake_token_around_image>", "<end_of_utterance>", "<global-img>", *_TILES]
_WORDS = [f"w{index}" for index in range(245)]
VOCABULARY = {word: index for index, word in enumerate([*_SPECIAL, *_MARKERS, *_WORDS])}
PIXELS, PATCH, MERGED = 56, 14, 2
"""Side of a tile and of a patch, and how many patches in each direction become one token."""


def processor() -> Idefics3Processor:
    """Words apart at spaces; an image becomes four tiles and the whole, of four tokens each."""
    words = Tokenizer(models.WordLevel(VOCABULARY, unk_token="<pad>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<pad>"
    )
    tokenizer.add_special_tokens({"additional_special_tokens": _MARKERS})
    images = Idefics3ImageProcessorPil(size={"longest_edge": 2 * PIXELS}, max_image_size={"longest_edge": PIXELS})
    return Idefics3Processor(images, tokenizer, image_seq_len=(PIXELS // PATCH // MERGED) ** 2)


def save_idefics3(folder: Path) -> Path:
    """Write model and processor into `folder` and return it; the weights are the same every time."""
    torch.manual_seed(0)
    config = Idefics3Config(
        text_config={
            "model_type": "llama",
            "vocab_size": len(VOCABULARY),
            "hidden_size": 128,
            "intermediate_size": 256,
            "num_hidden_layers": 3,
            "num_attention_heads": 8,
            "num_key_value_heads": 2,
            "head_dim": 16,
            "max_position_embeddings": 512,
            "initializer_range": 0.3,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "pad_token_id": 0,
        },
        # Heads of 36 elements, which the fused attention takes with zeros up to 64.
        vision_config={
            "hidden_size": 72,
            "intermediate_size": 128,
            "num_hidden_layers": 3,
            "num_attention_heads": 2,
            "image_size": PIXELS,
            "patch_size": PATCH,
            "initializer_range": 0.1,
        },
        scale_factor=MERGED,
        image_token_id=VOCABULARY[IMAGE],
        pad_token_id=0,
        tie_word_embeddings=False,
    )
    model = AutoModelForImageTextToText.from_config(config, attn_implementation="eager")
    unsettle(model)
    model.save_pretrained(folder)
    processor().save_pretrained(folder)
    return folder
