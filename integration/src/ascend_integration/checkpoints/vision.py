"""Tiny random vision-language models by family, and how a prompt names what is to be seen."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ascend_integration.checkpoints.idefics3 import save_idefics3
from ascend_integration.checkpoints.qwen_vl import END, IMAGE, START, VIDEO, save_qwen2_5_vl, save_qwen3_vl


@dataclass(frozen=True)
class VisionModel:
    """`save` writes the checkpoint, the same every time; a prompt has `image` or `video` where one is seen."""

    name: str
    save: Callable[[Path], Path]
    image: str
    video: str | None


VISION_MODELS = {
    model.name: model
    for model in (
        VisionModel("idefics3", save_idefics3, "<image>", None),
        VisionModel("qwen2.5-vl", save_qwen2_5_vl, f"{START}{IMAGE}{END}", f"{START}{VIDEO}{END}"),
        # vLLM 0.23.0 gives placeholders of Qwen3-VL's videos to transformers without the videos; 5.24 refuses that.
        VisionModel("qwen3-vl", save_qwen3_vl, f"{START}{IMAGE}{END}", None),
    )
}
