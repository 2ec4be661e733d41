"""Options for GPUs are reset with a warning that says why, or refused."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from vllm.config import MultiModalConfig

from vllm_ascend.logging import _once
from vllm_ascend.platform.gpu_only import refuse_unsupported


@pytest.fixture
def warnings_of_vllm(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> pytest.LogCaptureFixture:
    """caplog, with messages that were logged once before logged again."""
    monkeypatch.setattr(logging.getLogger("vllm"), "propagate", True)
    _once.cache_clear()
    return caplog


@pytest.mark.parametrize(
    ("arguments", "path", "neutral"),
    [
        ({"enable_dbo": True}, "parallel_config.enable_dbo", False),
        ({"ray_workers_use_nsight": False, "numa_bind": True}, "parallel_config.numa_bind", False),
        ({"attention_backend": "FLASH_ATTN"}, "attention_config.backend", None),
        ({"attention_config": {"use_trtllm_attention": True}}, "attention_config.use_trtllm_attention", None),
        ({"calculate_kv_scales": True}, "cache_config.calculate_kv_scales", False),
        (
            {"compilation_config": {"cudagraph_mm_encoder": True}},
            "compilation_config.cudagraph_mm_encoder",
            False,
        ),
        (
            {"compilation_config": {"pass_config": {"fuse_norm_quant": True}}},
            "compilation_config.pass_config.fuse_norm_quant",
            False,
        ),
    ],
    ids=["dbo", "numa", "attention-backend", "trtllm", "kv-scales", "encoder-graphs", "pass"],
)
def test_it_is_reset_with_one_warning(
    make_config: Any, warnings_of_vllm: pytest.LogCaptureFixture, arguments: dict[str, Any], path: str, neutral: object
) -> None:
    config = make_config(**arguments)
    owner: Any = config
    for name in path.split("."):
        owner = getattr(owner, name)
    assert owner == neutral
    messages = [it.getMessage() for it in warnings_of_vllm.records if "has no meaning on NPU" in it.getMessage()]
    assert len(messages) == 1
    assert messages[0].startswith(f"{path}=")


def test_nothing_is_warned_about_by_default(make_config: Any, warnings_of_vllm: pytest.LogCaptureFixture) -> None:
    make_config()
    make_config(compilation_config={"cudagraph_mode": "PIECEWISE"})
    assert "has no meaning on NPU" not in warnings_of_vllm.text


def test_a_list_can_be_part_of_a_message_that_appears_once(warnings_of_vllm: pytest.LogCaptureFixture) -> None:
    from vllm_ascend.logging import get_logger, log_once

    for _ in range(2):
        log_once(get_logger("vllm_ascend.test"), logging.WARNING, "sizes %s", [1, 2])
    assert warnings_of_vllm.text.count("sizes [1, 2]") == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"cpu_offload_gb": 1}, r"--cpu-offload-gb .* not supported on NPU yet; .*--tensor-parallel-size"),
        ({"offload_group_size": 2, "offload_num_in_group": 1}, "--offload-group-size"),
        ({"profiler_config": {"profiler": "cuda"}}, r"--profiler-config.profiler cuda .* NVIDIA's tools"),
        ({"kv_cache_dtype": "fp8"}, "quantised KV cache .* auto, bfloat16 or float16"),
    ],
    ids=["cpu-offload", "prefetch-offload", "cuda-profiler", "fp8-cache"],
)
def test_what_changes_what_happens_is_refused(make_config: Any, arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(NotImplementedError, match=says):
        make_config(**arguments)


def test_ranks_that_come_and_go_are_refused(make_config: Any) -> None:
    config = make_config()
    # vLLM asks for many other options beside this one.
    config.parallel_config.enable_elastic_ep = True
    with pytest.raises(NotImplementedError, match="--enable-elastic-ep .* is not supported on NPU yet; leave it out"):
        refuse_unsupported(config)


def test_images_that_see_themselves_are_refused_unless_only_text_is_served(make_config: Any) -> None:
    config = make_config()
    config.model_config.model_arch_config.is_mm_prefix_lm = True  # PaliGemma and others
    config.model_config.multimodal_config = MultiModalConfig()
    with pytest.raises(NotImplementedError, match=r"tokens of an image .* use --language-model-only"):
        refuse_unsupported(config)
    config.model_config.multimodal_config = MultiModalConfig(language_model_only=True)
    refuse_unsupported(config)
