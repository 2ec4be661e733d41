"""Which graph mode an engine runs in, and which batch sizes it captures.

The default is one graph per batch size for decode (``FULL_DECODE_ONLY``) and no compilation. The piecewise modes cut
the model at attention, which needs vLLM's compilation with the backend ``eager``: Dynamo traces, nothing is generated.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from vllm.config import CompilationMode, CUDAGraphMode

from vllm_ascend.logging import get_logger, log_once

if TYPE_CHECKING:
    from vllm.config import VllmConfig

    from vllm_ascend.api import SocProfile

logger = get_logger(__name__)

MAX_DEFAULT_CAPTURE = 512
"""vLLM's own bound of the default capture sizes, in tokens."""


def set_graph_defaults(vllm_config: VllmConfig) -> None:
    """Choose graph mode, compilation mode, backend and capture sizes where the user left them open.

    Runs before vLLM fills in its own defaults (``apply_config_platform_defaults``).
    """
    compilation = vllm_config.compilation_config
    model = vllm_config.model_config
    if compilation.cudagraph_mode is None and int(vllm_config.optimization_level) > 0:
        pooling = model is not None and model.runner_type == "pooling"
        # vLLM captures no pooling model in full and would silently ask for pieces instead.
        compilation.cudagraph_mode = CUDAGraphMode.NONE if pooling else CUDAGraphMode.FULL_DECODE_ONLY
    mode = compilation.cudagraph_mode
    pieces = mode is not None and mode.requires_piecewise_compilation()
    if compilation.mode is None:
        compilation.mode = CompilationMode.VLLM_COMPILE if pieces else CompilationMode.NONE
    elif pieces and compilation.mode != CompilationMode.VLLM_COMPILE:
        raise ValueError(
            f"cudagraph_mode={mode.name} cuts the model into pieces, which needs compilation mode VLLM_COMPILE, but "
            f"{compilation.mode.name} is set; leave the mode out, or use cudagraph_mode FULL_DECODE_ONLY"
        )
    if "none" not in compilation.custom_ops and "all" not in compilation.custom_ops:
        compilation.custom_ops.append("all")
    if mode not in (None, CUDAGraphMode.NONE) and compilation.cudagraph_capture_sizes is None:
        largest = compilation.max_cudagraph_capture_size or default_largest(vllm_config, pieces=pieces)
        largest = min(largest, vllm_config.scheduler_config.max_num_batched_tokens)
        whole_batch = vllm_config.scheduler_config.max_num_seqs * decode_query_len(vllm_config)
        interactive = vllm_config.performance_mode == "interactivity"
        compilation.cudagraph_capture_sizes = capture_sizes(largest, {whole_batch}, fine_grained=interactive)
        compilation.max_cudagraph_capture_size = largest


def decode_query_len(vllm_config: VllmConfig) -> int:
    """Tokens per request of a decode step: one, and one per draft token."""
    return 1 + vllm_config.num_speculative_tokens


def default_largest(vllm_config: VllmConfig, *, pieces: bool) -> int:
    """The largest captured batch in tokens: every request decoding; twice that for pieces, which hold prefill too."""
    tokens = vllm_config.scheduler_config.max_num_seqs * decode_query_len(vllm_config)
    return min(2 * tokens if pieces else tokens, MAX_DEFAULT_CAPTURE)


def capture_sizes(largest: int, wanted: set[int], *, fine_grained: bool = False) -> list[int]:
    """vLLM's grid (1, 2, 4, steps of 8 below 256, then of 16) up to ``largest``, and the sizes that lie beside it.

    vLLM's grid alone leaves out the largest batch itself unless it lies on the grid, so that the fullest batches run
    without a graph.

    Args:
        largest: the last size, in tokens; always captured.
        wanted: further sizes to capture if they are not larger.
        fine_grained: every size up to 32, as vLLM does for interactivity.
    """
    sizes = {1, 2, 4, largest} | set(range(8, min(largest + 1, 256), 8)) | set(range(256, largest + 1, 16)) | wanted
    if fine_grained:
        sizes |= set(range(1, 33))
    return sorted(it for it in sizes if it <= largest)


def check_graphs(vllm_config: VllmConfig, soc: SocProfile) -> None:
    """Refuse graph and compilation modes that cannot be had.

    Raises:
        ValueError: names the mode, the allowed ones, and what to set.
    """
    compilation = vllm_config.compilation_config
    mode = compilation.cudagraph_mode
    if mode == CUDAGraphMode.FULL:
        raise ValueError(
            "cudagraph_mode=FULL would capture batches that mix prefill and decode, which Ascend's attention does not "
            "allow: it takes sequence lengths from the host. Use FULL_DECODE_ONLY, or FULL_AND_PIECEWISE to capture "
            "the rest of mixed batches too"
        )
    if mode.name not in soc.graph_modes:
        raise ValueError(
            f"cudagraph_mode={mode.name} is not possible on {soc.name}; allowed: {', '.join(sorted(soc.graph_modes))}"
        )
    if compilation.mode not in (CompilationMode.NONE, CompilationMode.VLLM_COMPILE):
        raise ValueError(
            f"compilation mode {compilation.mode.name} is not supported on NPU; allowed: NONE, and VLLM_COMPILE with "
            "the backend 'eager'"
        )
    if compilation.mode == CompilationMode.VLLM_COMPILE and compilation.backend != "eager":
        raise ValueError(
            f"compilation backend {compilation.backend!r} is not supported on NPU, which has no code generator; "
            "set the backend 'eager' or leave it out"
        )
    if mode.requires_piecewise_compilation() and compilation.mode != CompilationMode.VLLM_COMPILE:
        # Pooling models and some KV connectors make vLLM turn a full mode into pieces after the defaults were set.
        log_once(
            logger,
            logging.WARNING,
            "vLLM asks for piecewise graphs here, which compilation mode NONE does not have: running without graphs. "
            "Set cudagraph_mode=PIECEWISE to compile in pieces",
        )
        compilation.cudagraph_mode = CUDAGraphMode.NONE
        compilation.cudagraph_capture_sizes = []
        compilation.max_cudagraph_capture_size = 0
