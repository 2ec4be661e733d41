"""`check_and_update_config`: dtypes, components, runner, start method, block size."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch

from vllm_ascend.api import ClaimKind, ComponentError
from vllm_ascend.platform.config_update import check_components, check_quantization
from vllm_ascend.plugins import collect
from vllm_ascend.plugins.groups import MOE


def test_the_worker_is_ours_unless_another_is_named(make_config: Any) -> None:
    assert make_config().parallel_config.worker_cls == "vllm_ascend.worker.worker.AscendWorker"
    assert make_config(worker_cls="my.Worker").parallel_config.worker_cls == "my.Worker"


def test_nothing_touches_a_device(make_config: Any) -> None:
    from vllm.platforms import current_platform

    before = torch.npu.is_initialized()
    config = make_config()
    assert config.device_config.device_type == "npu"
    assert current_platform.get_device_name() == "Ascend A2" or before
    assert torch.npu.is_initialized() == before


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("auto", torch.bfloat16), ("bfloat16", torch.bfloat16), ("float16", torch.float16), ("half", torch.float16)],
)
def test_allowed_dtypes(make_config: Any, dtype: str, expected: torch.dtype) -> None:
    assert make_config(dtype=dtype).model_config.dtype is expected


def test_float32_is_refused_with_the_allowed_dtypes_and_the_key(make_config: Any) -> None:
    with pytest.raises(
        ValueError, match=r"dtype float32 is not supported on A2; allowed: bfloat16, float16 .*allow_float32"
    ):
        make_config(dtype="float32")


def test_float32_with_the_key(make_config: Any) -> None:
    config = make_config(dtype="float32", additional_config={"allow_float32": True})
    assert config.model_config.dtype is torch.float32


def test_a_float32_checkpoint_runs_in_bfloat16_by_itself(make_config: Any, model_folder: Any) -> None:
    assert make_config(model=model_folder(torch_dtype="float32")).model_config.dtype is torch.bfloat16


@pytest.mark.parametrize(("runner", "head"), [("pooling", torch.float32), ("generate", torch.bfloat16)])
def test_heads_of_pooling_models_are_in_float32_as_vllm_documents(
    make_config: Any, runner: str, head: torch.dtype
) -> None:
    model = make_config(runner=runner, dtype="bfloat16").model_config
    assert (model.dtype, model.head_dtype) == (torch.bfloat16, head)


def test_an_explicit_v2_runner_is_refused(make_config: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_USE_V2_MODEL_RUNNER", "1")
    with pytest.raises(ValueError, match=r"VLLM_USE_V2_MODEL_RUNNER=1 .* unset the variable or set it to 0"):
        make_config()


def test_fork_is_refused(make_config: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_WORKER_MULTIPROC_METHOD", "fork")
    with pytest.raises(ValueError, match="'fork' cannot be used: torch_npu refuses"):
        make_config()


@pytest.mark.parametrize("block_size", [16, 48, 100])
def test_a_block_size_the_kernels_cannot_read_is_refused(make_config: Any, block_size: int) -> None:
    with pytest.raises(ValueError, match=rf"--block-size {block_size} is not possible on A2: .* blocks of 128 tokens"):
        make_config(block_size=block_size)


@pytest.mark.parametrize("block_size", [128, 256, 384])
def test_other_block_sizes_are_kept(make_config: Any, block_size: int) -> None:
    assert make_config(block_size=block_size).cache_config.block_size == block_size


def test_an_unknown_soc_family_is_refused(make_config: Any) -> None:
    with pytest.raises(ComponentError, match="SoC family: soc_profile='B7' is no known SoC family; allowed: A2"):
        make_config(additional_config={"soc_profile": "B7"})


def test_310p_without_its_component_is_refused(make_config: Any) -> None:
    with pytest.raises(ComponentError, match="distribution ascend-310p"):
        make_config(additional_config={"soc_profile": "310P"})


MIXTURE = {
    "architectures": ["Qwen3MoeForCausalLM"],
    "model_type": "qwen3_moe",
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 64,
    "decoder_sparse_step": 1,
}


def test_a_mixture_of_experts_needs_its_component(make_config: Any, model_folder: Any) -> None:
    config = make_config(model=model_folder(**MIXTURE))
    check_components(config, collect())
    with pytest.raises(ComponentError, match=r"mixture-of-experts model .* ascend-moe provides; it is not installed"):
        check_components(config, collect(points=lambda _: ()))


def test_experts_can_be_balanced_by_a_component(make_config: Any, model_folder: Any) -> None:
    parallel = {"tensor_parallel_size": 2, "enable_expert_parallel": True, "enable_eplb": True}
    config = make_config(model=model_folder(**MIXTURE), **parallel)
    assert config.parallel_config.enable_eplb
    components = collect()
    without = {key: it for key, it in components.claims.items() if it.kind is not ClaimKind.EXPERT_BALANCER}
    with pytest.raises(ComponentError, match=r"--enable-eplb .*ascend-moe"):
        check_components(config, dataclasses.replace(components, claims=without))


def test_speculative_decoding_needs_its_component(make_config: Any) -> None:
    ngram = {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 2}
    with pytest.raises(ComponentError, match=r"speculative method 'ngram' .* does not provide it: ascend-specdecode"):
        make_config(speculative_config=ngram)


def test_a_quantised_model_needs_its_component(make_config: Any, model_folder: Any) -> None:
    quantised = {"quant_method": "fp8", "activation_scheme": "dynamic"}
    with pytest.raises(
        ComponentError, match=r"quantisation method 'fp8' .* ascend-quant .*Methods available here: none"
    ):
        make_config(model=model_folder(quantization_config=quantised))


def test_without_components_the_messages_name_what_to_install(make_config: Any) -> None:
    nothing = collect(points=lambda _: ())
    with pytest.raises(
        ComponentError, match=r"ascend-quant provides; it is not installed: pip install 'vllm-ascend\[quant\]'"
    ):
        check_quantization("fp8", nothing)
    check_quantization(None, nothing)
    check_components(make_config(), nothing)


QUANT_METHOD = """
import torch
from vllm.model_executor.layers.quantization.base_config import QuantizationConfig

class Config(QuantizationConfig):
    @classmethod
    def get_name(cls): return "my_int8"
    @classmethod
    def get_supported_act_dtypes(cls): return [torch.bfloat16]
    @classmethod
    def get_min_capability(cls): return 0
    @classmethod
    def get_config_filenames(cls): return []
    @classmethod
    def from_config(cls, config): return cls()
    def get_quant_method(self, layer, prefix): return None

def register(context):
    context.claim_quant_method("my_int8", "my_int8_config:Config")
"""


def test_a_claimed_quantisation_method_is_a_choice(installer: Any, make_config: Any, model_folder: Any) -> None:
    from vllm.engine.arg_utils import EngineArgs
    from vllm.model_executor.layers.quantization import QUANTIZATION_METHODS
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    points = {"vllm_ascend.quantization": {"mine": "my_int8_config:register"}}
    installer.add("my-int8", points, {"my_int8_config": QUANT_METHOD})
    parser = EngineArgs.add_cli_args(FlexibleArgumentParser())
    try:
        assert parser.parse_args(["--quantization", "my_int8"]).quantization == "my_int8"
        config = make_config(model=model_folder(quantization_config={"quant_method": "my_int8"}))
        assert config.model_config.quantization == "my_int8"
        assert type(config.quant_config).__module__ == "my_int8_config"
    finally:
        QUANTIZATION_METHODS.remove("my_int8")


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("raise RuntimeError('broken on purpose')\n", r"component 'mine' of my-part 1\.2\.3: .*broken on purpose"),
        (
            "def register(context):\n    context.claim_layer('A', 'a:B')\n    context.claim_layer('A', 'a:C')\n",
            "claims the layer 'A' twice, with two paths",
        ),
    ],
    ids=["broken", "contradicts-itself"],
)
def test_a_broken_component_stops_the_engine_with_its_name(
    installer: Any, make_config: Any, source: str, says: str
) -> None:
    installer.add("my-part", {MOE.name: {"mine": "my_part:register"}}, {"my_part": source})
    with pytest.raises(ComponentError, match=says):
        make_config()


def test_a_broken_component_named_in_the_configuration_is_not_called_missing(installer: Any, make_config: Any) -> None:
    installer.add("my-part", {MOE.name: {"mine": "my_part2:register"}}, {"my_part2": "raise RuntimeError('oh')\n"})
    with pytest.raises(ValueError, match="the section 'mine' cannot be read: component 'mine' of my-part"):
        make_config(additional_config={"mine": {}})


def test_a_prompt_that_is_too_long_is_refused_with_both_lengths(make_config: Any, tmp_path: Path) -> None:
    from vllm.sampling_params import SamplingParams
    from vllm.v1.engine.input_processor import InputProcessor

    processor = InputProcessor(make_config(max_model_len=32))
    prompt = {"type": "token", "prompt_token_ids": list(range(3, 43)), "arrival_time": 0.0}
    with pytest.raises(ValueError, match=r"(?s)prompt.*40.*(longer|exceeds).*32"):
        processor.process_inputs("request", prompt, SamplingParams(max_tokens=1), supported_tasks=("generate",))
