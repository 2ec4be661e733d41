"""Options of vLLM that mean something on NVIDIA GPUs only.

Those that change how fast a result comes are reset with one warning; those that change what happens are refused.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from vllm_ascend.logging import get_logger, log_once

if TYPE_CHECKING:
    from vllm.config import VllmConfig

logger = get_logger(__name__)


@dataclass(frozen=True)
class GpuOption:
    """One option: where it is, what it is reset to, and why it has no meaning here."""

    path: str
    neutral: Any
    reason: str


INDUCTOR_PASSES = (
    "enable_qk_norm_rope_fusion",
    "enable_sp",
    "fuse_act_padding",
    "fuse_act_quant",
    "fuse_allreduce_rms",
    "fuse_attn_quant",
    "fuse_gemm_comms",
    "fuse_minimax_qk_norm",
    "fuse_mla_dual_rms_norm",
    "fuse_norm_quant",
    "fuse_rope_kvcache",
    "fuse_rope_kvcache_cat_mla",
)
"""Passes that vLLM's optimisation levels turn on by themselves, unless they were decided before."""

RESET: tuple[GpuOption, ...] = (
    GpuOption("parallel_config.numa_bind", False, "vLLM binds by the topology of NVIDIA GPUs"),
    GpuOption("parallel_config.ray_workers_use_nsight", False, "Nsight profiles CUDA; use the Ascend profiler"),
    GpuOption("parallel_config.enable_dbo", False, "dual-batch overlap needs DeepEP's CUDA kernels"),
    GpuOption("parallel_config.ubatch_size", 0, "micro-batches need DeepEP's CUDA kernels"),
    GpuOption("observability_config.enable_layerwise_nvtx_tracing", False, "NVTX ranges are read by CUDA tools"),
    GpuOption("cache_config.calculate_kv_scales", False, "the KV cache is not quantised"),
    GpuOption("compilation_config.use_inductor_graph_partition", False, "there is no Inductor for NPU"),
    GpuOption(
        "compilation_config.cudagraph_mm_encoder", False, "attention of vision encoders takes its lengths on the host"
    ),
    *(GpuOption(f"compilation_config.pass_config.{it}", False, "it is a pass of Inductor") for it in INDUCTOR_PASSES),
    GpuOption("attention_config.backend", None, "the SoC family decides the attention backend"),
    GpuOption("attention_config.flash_attn_version", None, "it chooses a CUDA kernel"),
    GpuOption("attention_config.use_prefill_decode_attention", False, "it chooses a Triton kernel for GPUs"),
    GpuOption("attention_config.use_trtllm_attention", None, "it chooses a CUDA kernel"),
    GpuOption("attention_config.disable_flashinfer_q_quantization", False, "FlashInfer is CUDA"),
    GpuOption("attention_config.mla_prefill_backend", None, "it chooses a CUDA kernel"),
    GpuOption("attention_config.use_prefill_query_quantization", False, "it chooses a CUDA kernel"),
    GpuOption("scheduler_config.max_num_partial_prefills", 1, "vLLM's V1 scheduler has no concurrent partial prefills"),
    GpuOption("kv_transfer_config.enable_permute_local_kv", False, "it permutes the layout of CUDA attention"),
)


@dataclass(frozen=True)
class Refusal:
    """Something that this version cannot do: when it was asked for, how it is named, and what to do instead."""

    asked: Callable[[VllmConfig], bool]
    what: str
    mend: str


def _images_see_themselves(config: VllmConfig) -> bool:
    """Whether image tokens are to attend to later tokens of their image, which causal attention would leave out."""
    model = config.model_config
    if model is None or not model.is_mm_prefix_lm or model.multimodal_config is None:
        return False
    return not model.multimodal_config.language_model_only


REFUSED: tuple[Refusal, ...] = (
    Refusal(
        lambda config: config.offload_config.uva.cpu_offload_gb > 0,
        "--cpu-offload-gb (weights in host memory reached through CUDA's unified addressing)",
        "leave it out and spread the model over more devices with --tensor-parallel-size",
    ),
    Refusal(
        lambda config: config.offload_config.prefetch.offload_group_size > 0,
        "--offload-group-size (weights prefetched on CUDA streams)",
        "leave it out and spread the model over more devices with --tensor-parallel-size",
    ),
    Refusal(
        lambda config: bool(config.cache_config.kv_offloading_size),
        "--kv-offloading-size (KV cache moved to the host by CUDA kernels)",
        "leave it out",
    ),
    Refusal(
        lambda config: config.cache_config.cache_dtype not in ("auto", "bfloat16", "float16"),
        "a quantised KV cache (--kv-cache-dtype)",
        "use --kv-cache-dtype auto, bfloat16 or float16",
    ),
    Refusal(
        lambda config: config.parallel_config.decode_context_parallel_size > 1,
        "--decode-context-parallel-size above 1",
        "leave it out",
    ),
    Refusal(
        lambda config: config.parallel_config.prefill_context_parallel_size > 1,
        "--prefill-context-parallel-size above 1",
        "leave it out",
    ),
    Refusal(
        lambda config: config.parallel_config.enable_elastic_ep,
        "--enable-elastic-ep (ranks that come and go)",
        "leave it out",
    ),
    Refusal(
        lambda config: config.model_config is not None and config.model_config.use_mla,
        "multi-head latent attention (DeepSeek and its relatives)",
        "use a model with multi-head or grouped-query attention",
    ),
    Refusal(
        lambda config: config.profiler_config is not None and config.profiler_config.profiler == "cuda",
        "--profiler-config.profiler cuda (the profiler of NVIDIA's tools)",
        "trace with msprof, or leave it out",
    ),
    Refusal(
        _images_see_themselves,
        "attention in both directions between the tokens of an image (Gemma 3 with images, PaliGemma)",
        "use --language-model-only, which serves the model for text",
    ),
)


def turn_off_inductor_passes(vllm_config: VllmConfig) -> None:
    """Decide against every pass that the user left open, before vLLM's optimisation level decides for some."""
    passes = vllm_config.compilation_config.pass_config
    for name in INDUCTOR_PASSES:
        if getattr(passes, name) is None:
            setattr(passes, name, False)


def reset_gpu_options(vllm_config: VllmConfig) -> None:
    """Reset every GPU-only option that is set, with one warning each."""
    for option in RESET:
        owner_path, _, name = option.path.rpartition(".")
        owner = attrgetter(owner_path)(vllm_config)
        if owner is None:
            continue
        value = getattr(owner, name)
        if value != option.neutral and value is not None:
            message = "%s=%s has no meaning on NPU and is reset to %s: %s"
            log_once(logger, logging.WARNING, message, option.path, value, option.neutral, option.reason)
            setattr(owner, name, option.neutral)
    if (multimodal := getattr(vllm_config.model_config, "multimodal_config", None)) is not None:
        backend = multimodal.mm_encoder_attn_backend
        if backend is not None and backend.name != "TORCH_SDPA":
            log_once(
                logger, logging.WARNING, "mm_encoder_attn_backend=%s chooses a GPU kernel and is reset", backend.name
            )
            multimodal.mm_encoder_attn_backend = None
    # Not options a user sets for speed of a GPU but defaults that suppose one.
    vllm_config.parallel_config.disable_custom_all_reduce = True
    if vllm_config.model_config is not None:
        vllm_config.model_config.disable_cascade_attn = True


def refuse_unsupported(vllm_config: VllmConfig) -> None:
    """Refuse what this version cannot do.

    Raises:
        NotImplementedError: names the option and what to do instead.
    """
    for refusal in REFUSED:
        if refusal.asked(vllm_config):
            raise NotImplementedError(f"{refusal.what} is not supported on NPU yet; {refusal.mend}")
