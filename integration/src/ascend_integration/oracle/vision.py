"""Greedy continuations of text with images and videos, as transformers computes them."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from PIL import Image
from transformers import AutoModelForImageTextToText, AutoProcessor, PreTrainedModel, ProcessorMixin

from ascend_integration.oracle.reference import Greedy


@dataclass(frozen=True)
class VisionPrompt:
    """Text with one placeholder per image or video, each kind in its order.

    A video is its frames, uint8 `[frames, height, width, 3]`; none is left out.
    """

    text: str
    images: list[Image.Image] = field(default_factory=list)
    videos: list[np.ndarray] = field(default_factory=list)


class VisionReference:
    """transformers' model in float32 on the CPU, one prompt at a time."""

    def __init__(self, model: PreTrainedModel, processor: ProcessorMixin) -> None:
        self.model = model.eval()
        self.processor = processor

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read a checkpoint folder."""
        model = AutoModelForImageTextToText.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32)
        return cls(model, AutoProcessor.from_pretrained(folder))

    def inputs(self, prompt: VisionPrompt) -> dict[str, Any]:
        """What the model is given for `prompt`."""
        media: dict[str, Any] = {}
        if prompt.images:
            media["images"] = prompt.images
        if prompt.videos:
            media |= {"videos": prompt.videos, "do_sample_frames": False}
        return dict(self.processor(text=[prompt.text], return_tensors="pt", **media))

    @torch.inference_mode()
    def greedy(self, prompt: VisionPrompt, new_tokens: int) -> Greedy:
        """Exactly `new_tokens` tokens after `prompt`."""
        inputs = self.inputs(prompt)
        output = self.model.generate(
            **inputs,
            do_sample=False,
            max_new_tokens=new_tokens,
            min_new_tokens=new_tokens,
            eos_token_id=None,
            pad_token_id=0,
            return_dict_in_generate=True,
            output_logits=True,
        )
        best = torch.stack(output.logits, dim=1)[0].float().topk(2).values
        tokens = output.sequences[0, inputs["input_ids"].shape[1] :].tolist()
        return Greedy(tokens, float((best[:, 0] - best[:, 1]).min()))
