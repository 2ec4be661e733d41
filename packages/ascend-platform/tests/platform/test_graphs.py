"""Graph modes, compilation modes and capture sizes."""

from __future__ import annotations

from typing import Any

import pytest
from vllm.config import CompilationMode, CUDAGraphMode

from vllm_ascend.platform.graphs import capture_sizes


def test_the_default_is_full_decode_graphs_without_compilation(make_config: Any) -> None:
    compilation = make_config().compilation_config
    assert compilation.cudagraph_mode is CUDAGraphMode.FULL_DECODE_ONLY
    assert compilation.mode is CompilationMode.NONE
    assert compilation.custom_ops == ["all"]


@pytest.mark.parametrize("mode", ["PIECEWISE", "FULL_AND_PIECEWISE"])
def test_pieces_bring_compilation_with_the_backend_eager(make_config: Any, mode: str) -> None:
    compilation = make_config(compilation_config={"cudagraph_mode": mode}).compilation_config
    assert compilation.cudagraph_mode is CUDAGraphMode[mode]
    assert compilation.mode is CompilationMode.VLLM_COMPILE
    assert compilation.backend == "eager"
    assert "vllm::unified_attention_with_output" in compilation.splitting_ops


@pytest.mark.parametrize(
    "arguments", [{"enforce_eager": True}, {"optimization_level": 0}], ids=["enforce-eager", "level-0"]
)
def test_no_graphs_when_none_are_wanted(make_config: Any, arguments: dict[str, Any]) -> None:
    compilation = make_config(**arguments).compilation_config
    assert compilation.cudagraph_mode is CUDAGraphMode.NONE
    assert compilation.mode is CompilationMode.NONE
    assert compilation.cudagraph_capture_sizes == []


@pytest.mark.parametrize(
    ("compilation", "says"),
    [
        ({"cudagraph_mode": "FULL"}, "cudagraph_mode=FULL .* Use FULL_DECODE_ONLY, or FULL_AND_PIECEWISE"),
        ({"cudagraph_mode": "PIECEWISE", "mode": 0}, "cudagraph_mode=PIECEWISE .*VLLM_COMPILE, but NONE is set"),
        ({"mode": 1}, "compilation mode STOCK_TORCH_COMPILE is not supported on NPU; allowed: NONE, and VLLM_COMPILE"),
        ({"mode": 3, "backend": "inductor"}, "compilation backend 'inductor' is not supported on NPU"),
    ],
    ids=["full", "pieces-without-compilation", "stock-compile", "inductor"],
)
def test_what_cannot_be_had_is_refused(make_config: Any, compilation: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make_config(compilation_config=compilation)


@pytest.mark.parametrize("max_num_seqs", [1, 3, 12, 20, 90, 256, 300])
def test_the_fullest_decode_batch_has_a_graph(make_config: Any, max_num_seqs: int) -> None:
    compilation = make_config(max_num_seqs=max_num_seqs).compilation_config
    assert compilation.cudagraph_capture_sizes[-1] == max_num_seqs
    assert compilation.max_cudagraph_capture_size == max_num_seqs


def test_sizes_for_12_requests() -> None:
    assert capture_sizes(12, {12}) == [1, 2, 4, 8, 12]


def test_six_requests_with_six_draft_tokens_need_42() -> None:
    assert capture_sizes(512, {6 * (1 + 6)}) == sorted({1, 2, 4, 42, *range(8, 256, 8), *range(256, 513, 16)})


def test_interactivity_captures_every_small_size() -> None:
    assert capture_sizes(40, {40}, fine_grained=True) == [*range(1, 33), 40]


def test_the_users_largest_size_is_captured_though_it_is_off_the_grid(make_config: Any) -> None:
    compilation = make_config(compilation_config={"max_cudagraph_capture_size": 12}, max_num_seqs=64).compilation_config
    assert compilation.cudagraph_capture_sizes == [1, 2, 4, 8, 12]


def test_the_users_sizes_are_kept(make_config: Any) -> None:
    compilation = make_config(compilation_config={"cudagraph_capture_sizes": [3, 7]}).compilation_config
    assert compilation.cudagraph_capture_sizes == [3, 7]


def test_no_size_is_larger_than_a_step(make_config: Any) -> None:
    sizes = {"max_cudagraph_capture_size": 64}
    compilation = make_config(max_num_seqs=32, max_num_batched_tokens=48, compilation_config=sizes).compilation_config
    assert compilation.cudagraph_capture_sizes == [1, 2, 4, 8, 16, 24, 32, 40, 48]
