"""The answers vLLM 0.23 asks an out-of-tree platform for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from vllm.platforms.interface import Platform, PlatformEnum

if TYPE_CHECKING:
    from vllm.config import VllmConfig
    from vllm.v1.attention.backends.registry import AttentionBackendEnum
    from vllm.v1.attention.selector import AttentionSelectorConfig


class AscendPlatform(Platform):
    """Ascend NPU platform."""

    _enum = PlatformEnum.OOT
    device_name = "npu"
    device_type = "npu"
    dispatch_key = "PrivateUse1"
    dist_backend = "hccl"
    ray_device_key = "NPU"
    device_control_env_var = "ASCEND_RT_VISIBLE_DEVICES"
    simple_compile_backend = "eager"
    supported_quantization: list[str] = []

    @classmethod
    def get_device_name(cls, device_id: int = 0) -> str:
        return torch.npu.get_device_name(device_id)

    @classmethod
    def get_device_total_memory(cls, device_id: int = 0) -> int:
        return torch.npu.get_device_properties(device_id).total_memory

    @classmethod
    def mem_get_info(cls, device: torch.types.Device = None) -> tuple[int, int]:
        return torch.npu.mem_get_info(device)

    @classmethod
    def get_current_memory_usage(cls, device: torch.types.Device | None = None) -> float:
        torch.npu.reset_peak_memory_stats(device)
        return torch.npu.max_memory_allocated(device)

    @classmethod
    def set_device(cls, device: torch.device) -> None:
        torch.npu.set_device(device)

    @classmethod
    def manual_seed_all(cls, seed: int) -> None:
        torch.npu.manual_seed_all(seed)

    @classmethod
    def check_if_supports_dtype(cls, dtype: torch.dtype) -> None:
        return None

    @classmethod
    def import_kernels(cls) -> None:
        return None

    @classmethod
    def support_hybrid_kv_cache(cls) -> bool:
        return True

    @classmethod
    def opaque_attention_op(cls) -> bool:
        return True

    @classmethod
    def support_static_graph_mode(cls) -> bool:
        return True

    @classmethod
    def num_compute_units(cls, device_id: int = 0) -> int:
        return torch.npu.get_device_properties(device_id).cube_core_num

    @classmethod
    def get_device_communicator_cls(cls) -> str:
        return "vllm_ascend.distributed.communicator.AscendCommunicator"

    @classmethod
    def get_static_graph_wrapper_cls(cls) -> str:
        return "vllm_ascend.graph.wrapper.ACLGraphWrapper"

    @classmethod
    def get_attn_backend_cls(
        cls,
        selected_backend: AttentionBackendEnum | None,
        attn_selector_config: AttentionSelectorConfig,
        num_heads: int | None = None,
    ) -> str:
        return "vllm_ascend.attention.backend.AscendAttentionBackend"

    @classmethod
    def check_and_update_config(cls, vllm_config: VllmConfig) -> None:
        from vllm.config import CompilationMode, CUDAGraphMode

        parallel: Any = vllm_config.parallel_config
        compilation = vllm_config.compilation_config
        if parallel.worker_cls == "auto":
            parallel.worker_cls = "vllm_ascend.worker.worker.AscendWorker"
        parallel.disable_custom_all_reduce = True
        model = vllm_config.model_config
        eager = model is not None and model.enforce_eager
        if model is not None:
            model.disable_cascade_attn = True
        compilation.mode = CompilationMode.NONE
        compilation.cudagraph_mode = CUDAGraphMode.NONE if eager else CUDAGraphMode.FULL_DECODE_ONLY
        if eager:
            compilation.cudagraph_capture_sizes = []
            compilation.max_cudagraph_capture_size = 0
        if "none" not in compilation.custom_ops and "all" not in compilation.custom_ops:
            compilation.custom_ops.append("all")
