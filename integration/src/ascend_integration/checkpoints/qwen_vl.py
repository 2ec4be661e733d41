"""Tiny random Qwen2.5-VL and Qwen3-VL, with the processors that turn text, images and frames into their inputs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoModelForImageTextToText,
    PreTrainedConfig,
    ProcessorMixin,
    Qwen2_5_VLConfig,
    Qwen2_5_VLProcessor,
    Qwen2VLImageProcessor,
    Qwen2VLVideoProcessor,
    Qwen3VLConfig,
    Qwen3VLProcessor,
    Qwen3VLVideoProcessor,
)

from ascend_integration.checkpoints.random_weights import unsettle
from ascend_integration.checkpoints.vision_words import tokenizer, vocabulary

START, END, IMAGE, VIDEO = "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"
MARKERS = [START, END, IMAGE, VIDEO]
IDS = vocabulary(MARKERS, 256)
# Up to 48 tokens an image, of 2 x 2 patches each; more tokens than that are scaled down.
LONGEST = 48

_TEXT = {
    "vocab_size": len(IDS),
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "initializer_range": 0.3,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
_VISION = {
    "depth": 3,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_heads": 2,
    "out_hidden_size": 128,
    "initializer_range": 0.1,
}
_TOKENS = {
    "image_token_id": IDS[IMAGE],
    "video_token_id": IDS[VIDEO],
    "vision_start_token_id": IDS[START],
    "vision_end_token_id": IDS[END],
}
# Frames without times are taken to be 24 a second, two a token: positions in time differ by 1 from token to token. They
# stay below an image's height and width, after which transformers lets text go on, vLLM after the largest of the three.
_SPEED = {"tokens_per_second": 13}


def _save(config: PreTrainedConfig, processor: ProcessorMixin, folder: Path) -> Path:
    torch.manual_seed(0)
    model = AutoModelForImageTextToText.from_config(config, attn_implementation="eager")
    unsettle(model)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def _processor(kind: Callable[..., ProcessorMixin], videos: Callable[..., Any], patch: int) -> ProcessorMixin:
    pixels = (2 * patch) ** 2
    sizes = {"patch_size": patch, "size": {"shortest_edge": pixels, "longest_edge": LONGEST * pixels}}
    return kind(Qwen2VLImageProcessor(**sizes), tokenizer(IDS, MARKERS), videos(**sizes, do_sample_frames=False))


def save_qwen2_5_vl(folder: Path) -> Path:
    """Write Qwen2.5-VL into `folder`: layer 1 of its vision tower sees whole images, two see windows."""
    config = Qwen2_5_VLConfig(
        text_config=_TEXT | {"rope_parameters": {"rope_type": "default", "mrope_section": [4, 6, 6]}},
        vision_config=_VISION | {"fullatt_block_indexes": [1], "window_size": 112, "patch_size": 14, **_SPEED},
        **_TOKENS,
    )
    return _save(config, _processor(Qwen2_5_VLProcessor, Qwen2VLVideoProcessor, 14), folder)


def save_qwen3_vl(folder: Path) -> Path:
    """Write Qwen3-VL into `folder`: two layers of its vision tower give to layers of the text model."""
    rope = {"rope_type": "default", "mrope_section": [6, 5, 5], "mrope_interleaved": True}
    config = Qwen3VLConfig(
        text_config=_TEXT | {"head_dim": 32, "rope_parameters": rope},
        vision_config=_VISION | {"deepstack_visual_indexes": [0, 1], "num_position_embeddings": 64, "patch_size": 16},
        **_TOKENS,
    )
    return _save(config, _processor(Qwen3VLProcessor, Qwen3VLVideoProcessor, 16), folder)
