"""The answers vLLM 0.23 asks an out-of-tree platform for.

vLLM imports this module while it imports its own ``vllm.config``, so what needs that is imported in the methods.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

import torch
import torch_npu  # noqa: F401  (torch.npu exists even where the backend autoload of torch is switched off)
from vllm.platforms.interface import Platform, PlatformEnum

from vllm_ascend.patch import apply_patches
from vllm_ascend.plugins import commit_quant_methods, registry
from vllm_ascend.plugins.commit import load_claim

if TYPE_CHECKING:
    from torch.distributed import PrefixStore, ProcessGroup
    from vllm.config import VllmConfig
    from vllm.config.kernel import IrOpPriorityConfig
    from vllm.utils.argparse_utils import FlexibleArgumentParser
    from vllm.v1.attention.backends.registry import AttentionBackendEnum
    from vllm.v1.attention.selector import AttentionSelectorConfig

    from vllm_ascend.api import SocProfile


class AscendPlatform(Platform):
    """Ascend NPUs. No method makes an NPU context in a process that has none, unless it says so."""

    _enum = PlatformEnum.OOT
    device_name = "npu"
    device_type = "npu"
    dispatch_key = "PrivateUse1"
    dist_backend = "hccl"
    ray_device_key = "NPU"
    device_control_env_var = "ASCEND_RT_VISIBLE_DEVICES"
    ray_noset_device_env_vars: ClassVar[list[str]] = ["RAY_EXPERIMENTAL_NOSET_ASCEND_RT_VISIBLE_DEVICES"]
    additional_env_vars: ClassVar[list[str]] = ["ASCEND_RT_VISIBLE_DEVICES", "PYTORCH_NPU_ALLOC_CONF"]
    simple_compile_backend = "eager"

    @property
    def supported_dtypes(self) -> list[torch.dtype]:
        """What the SoC takes, and float32; the first stands in where a model's own is not among them.

        vLLM computes the heads of pooling models in float32 where the platform lists it, else in the model's dtype,
        with classes and scores rounded to it. A model as a whole in float32 is refused later (``check_dtype``).
        """
        return [*registry().soc.dtypes, torch.float32]

    @classmethod
    def pre_register_and_update(cls, parser: FlexibleArgumentParser | None = None) -> None:
        """Before arguments are parsed and configurations made: patches, and the quantisation methods."""
        apply_patches("platform")
        commit_quant_methods()

    @classmethod
    def apply_config_platform_defaults(cls, vllm_config: VllmConfig) -> None:
        """Graph and compilation defaults, before vLLM's own."""
        from vllm_ascend.platform.gpu_only import turn_off_inductor_passes
        from vllm_ascend.platform.graphs import set_graph_defaults

        set_graph_defaults(vllm_config)
        turn_off_inductor_passes(vllm_config)

    @classmethod
    def check_and_update_config(cls, vllm_config: VllmConfig) -> None:
        """See :func:`vllm_ascend.platform.config_update.check_and_update`."""
        from vllm_ascend.platform.config_update import check_and_update

        check_and_update(vllm_config)

    @classmethod
    def verify_quantization(cls, quant: str) -> None:
        """Refuse a method that no component provides, while the model's configuration is read."""
        from vllm_ascend.platform.config_update import check_quantization

        components = registry()
        components.raise_problems()
        check_quantization(quant, components)

    @classmethod
    def get_attn_backend_cls(
        cls,
        selected_backend: AttentionBackendEnum | None,
        attn_selector_config: AttentionSelectorConfig,
        num_heads: int | None = None,
    ) -> str:
        """The attention backend of the SoC family. Asks the device: for workers."""
        if attn_selector_config.use_mla:
            raise NotImplementedError("multi-head latent attention is not supported on NPU yet")
        return cls.soc_profile().attention_backend

    @classmethod
    def soc_profile(cls) -> SocProfile:
        """See :class:`vllm_ascend.api.AscendPlatform`."""
        from vllm.config import get_current_vllm_config_or_none

        from vllm_ascend.config import AscendConfig

        vllm_config = get_current_vllm_config_or_none()
        components = registry(AscendConfig.of(vllm_config).soc_profile if vllm_config is not None else None)
        components.raise_problems()
        return components.soc

    @classmethod
    def get_device_communicator_cls(cls) -> str:
        """HCCL through torch.distributed."""
        return "vllm_ascend.distributed.communicator.AscendCommunicator"

    @classmethod
    def get_static_graph_wrapper_cls(cls) -> str:
        """Captures and replays NPUGraphs."""
        return "vllm_ascend.graph.wrapper.ACLGraphWrapper"

    @classmethod
    def get_punica_wrapper(cls) -> str:
        """The products of low-rank adapters."""
        return "vllm_ascend.lora.punica.AscendPunicaWrapper"

    @classmethod
    def import_kernels(cls) -> None:
        """Nothing: vLLM is built without compiled kernels, and torch_npu brings its own."""

    @classmethod
    def import_ir_kernels(cls) -> None:
        """The providers of ``vllm.ir`` operators that components claim."""
        for claim in cls._op_providers():
            load_claim(claim)

    @classmethod
    def get_default_ir_op_priority(cls, vllm_config: VllmConfig) -> IrOpPriorityConfig:
        """Claimed providers first where no code is generated, then vLLM's own definition."""
        from vllm.config.kernel import IrOpPriorityConfig

        return IrOpPriorityConfig.with_default([*(it.name for it in cls._op_providers()), "native"])

    @staticmethod
    def _op_providers() -> list[Any]:
        from vllm_ascend.api import ClaimKind

        return [it for it in registry().claims.values() if it.kind is ClaimKind.OP_PROVIDER]

    @classmethod
    def check_if_supports_dtype(cls, dtype: torch.dtype) -> None:
        """Checked with the configuration, where ``allow_float32`` is known."""

    @classmethod
    def get_device_name(cls, device_id: int = 0) -> str:
        """The chip's name in a process that has a context, else that of the SoC family, which needs none."""
        if torch.npu.is_initialized():
            return torch.npu.get_device_name(device_id)
        return f"Ascend {registry().soc.name}"

    @classmethod
    def get_device_uuid(cls, device_id: int = 0) -> str:
        """The device's own identifier. Makes a context."""
        return str(torch.npu.get_device_properties(device_id).uuid)

    @classmethod
    def get_device_total_memory(cls, device_id: int = 0) -> int:
        """Bytes of device memory.

        Raises:
            RuntimeError: this process has no NPU context; vLLM then takes its defaults for smaller devices.
        """
        if not torch.npu.is_initialized():
            raise RuntimeError("the memory of an NPU cannot be read without making a context, which is for workers")
        return torch.npu.get_device_properties(device_id).total_memory

    @classmethod
    def mem_get_info(cls, device: torch.types.Device = None) -> tuple[int, int]:
        """(free, total) bytes of device memory. Makes a context."""
        return torch.npu.mem_get_info(device)

    @classmethod
    def get_current_memory_usage(cls, device: torch.types.Device | None = None) -> float:
        """Bytes that tensors hold now. Makes a context."""
        torch.npu.reset_peak_memory_stats(device)
        return torch.npu.max_memory_allocated(device)

    @classmethod
    def set_device(cls, device: torch.device) -> None:
        """Choose the device. Makes a context."""
        torch.npu.set_device(device)

    @classmethod
    def manual_seed_all(cls, seed: int) -> None:
        """Seed every device's generator; deferred by torch_npu until there is a context."""
        torch.npu.manual_seed_all(seed)

    @classmethod
    def num_compute_units(cls, device_id: int = 0) -> int:
        """Cube cores. Makes a context."""
        return torch.npu.get_device_properties(device_id).cube_core_num

    @classmethod
    def is_pin_memory_available(cls) -> bool:
        """Whether host memory can be page-locked."""
        return True

    @classmethod
    def is_sleep_mode_available(cls) -> bool:
        """The worker frees the memory of weights and KV cache, and takes it again."""
        return True

    @classmethod
    def support_hybrid_kv_cache(cls) -> bool:
        """Models that mix full and sliding-window attention keep one cache per kind."""
        return True

    @classmethod
    def support_static_graph_mode(cls) -> bool:
        """NPUGraph."""
        return True

    @classmethod
    def opaque_attention_op(cls) -> bool:
        """Attention is one operator to Dynamo; piecewise compilation cuts there."""
        return True

    @classmethod
    def use_custom_op_collectives(cls) -> bool:
        """Collectives are operators to Dynamo, which cannot trace process groups."""
        return True

    @classmethod
    def stateless_init_device_torch_dist_pg(
        cls, backend: str, prefix_store: PrefixStore, group_rank: int, group_size: int, timeout: timedelta
    ) -> ProcessGroup:
        """An HCCL process group beside torch.distributed's default one. Makes a context.

        Raises:
            ValueError: another backend is asked for.
        """
        if backend != cls.dist_backend:
            raise ValueError(f"process group backend {backend!r} is not possible on NPU; allowed: {cls.dist_backend!r}")
        from torch.distributed import Backend, ProcessGroup
        from torch.distributed.distributed_c10d import _DistributedBackendOptions

        # torch_npu registers how an HCCL backend is made; torch keeps it here and has no public way to call it alone.
        options = _DistributedBackendOptions()
        options.store, options.timeout = prefix_store, timeout
        options.group_rank, options.group_size = group_rank, group_size
        options.global_ranks_in_group = list(range(group_size))
        options.group_id = f"stateless_{cls.dist_backend}"
        hccl = Backend._plugins[backend.upper()].creator_fn(options, None)
        hccl._set_sequence_number_for_group()
        group = ProcessGroup(prefix_store, group_rank, group_size)
        group._set_default_backend(ProcessGroup.BackendType.CUSTOM)
        group._register_backend(torch.device(cls.device_type), ProcessGroup.BackendType.CUSTOM, hccl)
        return group
