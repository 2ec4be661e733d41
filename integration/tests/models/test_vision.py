"""Text with images and videos: token for token transformers' continuation."""

import gc
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from vllm import LLM, SamplingParams

from ascend_integration.checkpoints.vision import VISION_MODELS, VisionModel
from ascend_integration.engine.grid import GRAPH_SIZES
from ascend_integration.engine.in_process import in_process_engine
from ascend_integration.oracle import Greedy
from ascend_integration.oracle.vision import VisionPrompt, VisionReference
from ascend_sim import instruments

NEW_TOKENS = 24
EAGER = {"enforce_eager": True}
GRAPHS = {"compilation_config": {"cudagraph_mode": "FULL_DECODE_ONLY", "cudagraph_capture_sizes": GRAPH_SIZES}}


def noise(*shape: int, seed: int) -> np.ndarray:
    """Random bytes."""
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def vision_prompts(family: VisionModel) -> list[VisionPrompt]:
    """No image, one, two in a prompt, and an image again that was in another prompt; a video if the family takes any.

    The largest is more than one window of Qwen2.5-VL's vision tower in both directions.
    """
    wide, tall, square = (
        Image.fromarray(noise(height, width, 3, seed=height)) for height, width in ((84, 126), (140, 150), (56, 56))
    )
    seen = family.image
    prompts = [
        VisionPrompt("w1 w2 w3"),
        VisionPrompt(f"w1 {seen} w5 w6", [wide]),
        VisionPrompt(f"{seen} w8 {seen} w5 w6", [square, tall]),
        VisionPrompt(f"w9 w8 w7 {seen}", [wide]),
    ]
    if family.video is not None:
        prompts.append(VisionPrompt(f"w3 {family.video} w4", videos=[noise(6, 60, 90, 3, seed=1)]))
        both = f"w3 {family.video} w4 {seen} w5"
        prompts.append(VisionPrompt(both, [square], [noise(4, 112, 56, 3, seed=2)]))
    return prompts


@dataclass(frozen=True)
class Seeing:
    """An engine, the prompts and transformers' continuation of each."""

    family: VisionModel
    llm: LLM
    prompts: list[VisionPrompt]
    expected: list[Greedy]

    def tokens(self, prompts: list[VisionPrompt]) -> list[list[int]]:
        """Greedy continuations of `prompts`, submitted together."""
        inputs: list[dict[str, Any]] = []
        for prompt in prompts:
            seen = {"image": prompt.images, "video": prompt.videos}
            seen = {kind: items for kind, items in seen.items() if items}
            inputs.append({"prompt": prompt.text, **({"multi_modal_data": seen} if seen else {})})
        parameters = SamplingParams(temperature=0, max_tokens=NEW_TOKENS, ignore_eos=True, detokenize=False)
        outputs = self.llm.generate(inputs, parameters, use_tqdm=False)
        return [list(output.outputs[0].token_ids) for output in outputs]


@dataclass(frozen=True)
class Checkpoint:
    """A family's checkpoint and what transformers makes of the prompts."""

    family: VisionModel
    folder: Path
    expected: list[Greedy]


@pytest.fixture(scope="module")
def checkpoint(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    family = VISION_MODELS[request.param]
    folder = family.save(tmp_path_factory.mktemp("models") / family.name)
    reference = VisionReference.load(folder)
    return Checkpoint(family, folder, [reference.greedy(prompt, NEW_TOKENS) for prompt in vision_prompts(family)])


@pytest.fixture(scope="module")
def seeing(request: pytest.FixtureRequest, checkpoint: Checkpoint) -> Iterator[Seeing]:
    """The engine and the oracle, in float32."""
    with in_process_engine(
        str(checkpoint.folder),
        dtype="float32",
        additional_config={"allow_float32": True},
        limit_mm_per_prompt={"image": 2, **({"video": 1} if checkpoint.family.video else {})},
        # With the cache vLLM 0.23.0 gives placeholders to transformers without what they stand for; 5.24 refuses that.
        mm_processor_cache_gb=0,
        **request.param,
    ) as llm:
        yield Seeing(checkpoint.family, llm, vision_prompts(checkpoint.family), checkpoint.expected)


def engines() -> list:
    """Parameters of `checkpoint` and `seeing`."""
    return [
        pytest.param(
            family.name,
            settings,
            id=f"{family.name}-{name}",
            marks=pytest.mark.supports(
                family.name,
                f"text with images{' and videos' if family.video else ''}, {name}",
                "transformers, greedy tokens",
            ),
        )
        for family in VISION_MODELS.values()
        for name, settings in [("eager", EAGER), ("full graphs", GRAPHS)]
    ]


@pytest.mark.parametrize(("checkpoint", "seeing"), engines(), indirect=True, scope="module")
class TestImages:
    def test_no_token_is_a_near_tie(self, seeing: Seeing):
        assert min(continuation.gap for continuation in seeing.expected) > 1e-3

    def test_together(self, seeing: Seeing):
        assert seeing.tokens(seeing.prompts) == [continuation.tokens for continuation in seeing.expected]

    def test_alone(self, seeing: Seeing):
        tokens = [seeing.tokens([prompt])[0] for prompt in seeing.prompts]
        assert tokens == [continuation.tokens for continuation in seeing.expected]

    def test_images_are_seen_by_operators_of_the_device(self, seeing: Seeing):
        # An image that no earlier test has shown, because the encoder's results are kept.
        image = Image.fromarray(noise(56, 56, 3, seed=99))
        with instruments.counting() as counts:
            seeing.tokens([VisionPrompt(f"{seeing.family.image} w3", [image])])
        assert counts["op:npu::npu_fused_infer_attention_score"] == 3  # one per layer of the vision tower
        assert counts["cpu_fallbacks"] == 0


@pytest.mark.parametrize("checkpoint", ["idefics3"], indirect=True)
def test_an_engine_leaves_no_memory_behind(checkpoint: Checkpoint) -> None:
    """Weights and KV cache of a model with images are free again once its engine is gone."""
    gc.collect()
    before = torch.npu.memory_allocated()
    settings = {"dtype": "float32", "additional_config": {"allow_float32": True}, **EAGER}
    with in_process_engine(str(checkpoint.folder), **settings) as llm:
        llm.generate("w1 w2 w3", SamplingParams(max_tokens=2), use_tqdm=False)
        assert torch.npu.memory_allocated() - before > 64 << 20  # the KV cache alone
        del llm
    assert torch.npu.memory_allocated() - before < 8 << 20
