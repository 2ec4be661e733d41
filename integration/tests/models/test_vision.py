"""Text with images: token for token transformers' continuation."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from vllm import LLM, SamplingParams

from ascend_integration.checkpoints.vision import save_vision_model
from ascend_integration.engine.grid import GRAPH_SIZES
from ascend_integration.engine.in_process import in_process_engine
from ascend_integration.oracle import Greedy
from ascend_integration.oracle.vision import VisionPrompt, VisionReference
from ascend_sim import instruments

NEW_TOKENS = 24
EAGER = {"enforce_eager": True}
GRAPHS = {"compilation_config": {"cudagraph_mode": "FULL_DECODE_ONLY", "cudagraph_capture_sizes": GRAPH_SIZES}}


def vision_prompts() -> list[VisionPrompt]:
    """No image, one, two in a prompt, and an image again that was in another prompt."""
    draw = np.random.default_rng(0)
    wide, tall, square = (
        Image.fromarray(draw.integers(0, 256, (height, width, 3), dtype=np.uint8))
        for height, width in ((56, 84), (120, 60), (56, 56))
    )
    return [
        VisionPrompt("w1 w2 w3"),
        VisionPrompt("w1 <image> w5 w6", [wide]),
        VisionPrompt("<image> w8 <image> w5 w6", [square, tall]),
        VisionPrompt("w9 w8 w7 <image>", [wide]),
    ]


@dataclass(frozen=True)
class Seeing:
    """An engine, the prompts and transformers' continuation of each."""

    llm: LLM
    prompts: list[VisionPrompt]
    expected: list[Greedy]

    def tokens(self, prompts: list[VisionPrompt]) -> list[list[int]]:
        """Greedy continuations of `prompts`, submitted together."""
        inputs: list[dict[str, Any]] = [
            {"prompt": prompt.text, **({"multi_modal_data": {"image": prompt.images}} if prompt.images else {})}
            for prompt in prompts
        ]
        parameters = SamplingParams(temperature=0, max_tokens=NEW_TOKENS, ignore_eos=True, detokenize=False)
        outputs = self.llm.generate(inputs, parameters, use_tqdm=False)
        return [list(output.outputs[0].token_ids) for output in outputs]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_vision_model(tmp_path_factory.mktemp("models") / "idefics3")


@pytest.fixture(scope="module")
def expected(folder: Path) -> list[Greedy]:
    reference = VisionReference.load(folder)
    return [reference.greedy(prompt, NEW_TOKENS) for prompt in vision_prompts()]


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(
            settings,
            id=name,
            marks=pytest.mark.supports("idefics3", f"text with images, {name}", "transformers, greedy tokens"),
        )
        for name, settings in [("eager", EAGER), ("full graphs", GRAPHS)]
    ],
)
def seeing(request: pytest.FixtureRequest, folder: Path, expected: list[Greedy]) -> Iterator[Seeing]:
    """The engine and the oracle, in float32."""
    with in_process_engine(
        str(folder),
        dtype="float32",
        additional_config={"allow_float32": True},
        limit_mm_per_prompt={"image": 2},
        **request.param,
    ) as llm:
        yield Seeing(llm, vision_prompts(), expected)


class TestImages:
    def test_no_token_is_a_near_tie(self, seeing: Seeing):
        assert min(continuation.gap for continuation in seeing.expected) > 1e-3

    def test_together(self, seeing: Seeing):
        assert seeing.tokens(seeing.prompts) == [continuation.tokens for continuation in seeing.expected]

    def test_alone(self, seeing: Seeing):
        tokens = [seeing.tokens([prompt])[0] for prompt in seeing.prompts]
        assert tokens == [continuation.tokens for continuation in seeing.expected]

    def test_images_pass_the_fused_attention(self, seeing: Seeing):
        # An image that no earlier test has shown, because the encoder's results are kept.
        image = Image.fromarray(np.random.default_rng(99).integers(0, 256, (56, 56, 3), dtype=np.uint8))
        with instruments.counting() as counts:
            seeing.tokens([VisionPrompt("<image> w3", [image])])
        assert counts["op:npu::npu_fused_infer_attention_score"] == 3  # one per layer of the vision tower
        assert counts["cpu_fallbacks"] == 0
