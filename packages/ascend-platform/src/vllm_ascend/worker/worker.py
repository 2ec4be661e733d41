"""The worker process of one NPU."""

from __future__ import annotations

import gc
import os
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch_npu  # noqa: F401  registers the npu device and its operators
from torch import nn
from vllm.compilation.cuda_graph import CUDAGraphWrapper
from vllm.config import VllmConfig
from vllm.logger import init_logger
from vllm.platforms import current_platform
from vllm.utils.mem_utils import MemorySnapshot, format_gib
from vllm.utils.platform_utils import is_pin_memory_available
from vllm.utils.torch_utils import set_random_seed
from vllm.v1.utils import report_usage_stats
from vllm.v1.worker.gpu_worker import Worker, init_worker_distributed_environment
from vllm.v1.worker.utils import request_memory
from vllm.v1.worker.workspace import init_workspace_manager

from vllm_ascend.patch import apply_patches
from vllm_ascend.plugins import commit_layers
from vllm_ascend.worker.sleeping import KV_CACHE, WEIGHTS, SleepingMemory, tensors_in

logger = init_logger(__name__)


class AscendWorker(Worker):
    """vLLM's worker on one NPU: everything but device set-up, memory pools and the runner's class is inherited."""

    def __init__(
        self,
        vllm_config: VllmConfig,
        local_rank: int,
        rank: int,
        distributed_init_method: str,
        is_driver_worker: bool = False,
    ) -> None:
        apply_patches("worker")
        super().__init__(vllm_config, local_rank, rank, distributed_init_method, is_driver_worker)

    def init_device(self) -> None:
        """Take the NPU of this rank, join the process groups, measure free memory and make the runner."""
        self.local_rank += self._data_parallel_offset()
        count = torch.npu.device_count()
        if self.local_rank >= count:
            raise RuntimeError(
                f"rank {self.rank} needs NPU {self.local_rank}, but {count} NPUs are visible; make more visible with "
                f"{current_platform.device_control_env_var}, or lower the tensor, pipeline or data parallel size"
            )
        self.device = torch.device("npu", self.local_rank)
        torch.npu.set_device(self.device)
        self.sleeping = SleepingMemory(self.device, is_pin_memory_available())
        # Now the chip can be asked for its family, which decides the layers that stand in for vLLM's.
        commit_layers(self.vllm_config)
        current_platform.check_if_supports_dtype(self.model_config.dtype)
        # HCCL allocates its buffers here, before free memory is measured.
        init_worker_distributed_environment(
            self.vllm_config, self.rank, self.distributed_init_method, self.local_rank, current_platform.dist_backend
        )
        set_random_seed(self.model_config.seed)
        gc.collect()
        torch.npu.empty_cache()
        self.init_snapshot = MemorySnapshot(device=self.device)
        self.requested_memory = request_memory(self.init_snapshot, self.cache_config)
        logger.debug("Requested memory: %s GiB", format_gib(self.requested_memory))
        init_workspace_manager(self.device, 2 if self.parallel_config.enable_dbo else 1)
        self.model_runner = self._make_model_runner()
        if self.rank == 0:
            report_usage_stats(self.vllm_config)

    def _make_model_runner(self) -> Any:
        if self.use_v2_model_runner:
            raise NotImplementedError(
                "vLLM's V2 model runner has no Ascend implementation yet; set VLLM_USE_V2_MODEL_RUNNER=0"
            )
        # Imported late: the runner's module must be loaded with the worker patches in place.
        from vllm_ascend.worker.model_runner import AscendModelRunner

        return AscendModelRunner(self.vllm_config, self.device)

    def _data_parallel_offset(self) -> int:
        """Devices taken by the data-parallel replicas before this one, where all of them see the same devices."""
        parallel = self.parallel_config
        if (
            parallel.distributed_executor_backend in ("ray", "external_launcher")
            or parallel.data_parallel_backend == "ray"
            or parallel.nnodes_within_dp != 1
        ):
            return 0
        devices = parallel.pipeline_parallel_size * parallel.tensor_parallel_size
        if current_platform.device_control_env_var in os.environ and torch.npu.device_count() == devices:
            # vLLM narrows what an engine core it launches can see to its replica's devices; in process it does not.
            return 0
        replica = parallel.data_parallel_rank_local
        if replica is None:
            replica = parallel.data_parallel_index
        return replica * devices

    def _maybe_get_memory_pool_context(self, tag: str) -> AbstractContextManager[None]:
        # Weights and KV cache come from torch's caching allocator; sleep mode needs no pools of its own.
        return nullcontext()

    def sleep(self, level: int = 1) -> None:
        """Free the memory of weights and KV cache, and drop the graphs, which name its addresses.

        Args:
            level: 1 keeps the weights in host memory; 2 forgets them, for new ones to be loaded after waking. Buffers
                stay where they are, the contents of the KV cache are lost.

        Raises:
            ValueError: the level is another.
        """
        if level not in (1, 2):
            raise ValueError(f"sleep level {level} is not possible; 1 keeps the weights in host memory, 2 forgets them")
        CUDAGraphWrapper.clear_all_graphs()
        runner = self.model_runner
        models = [runner.get_model(), getattr(getattr(runner, "drafter", None), "model", None)]
        weights = [weight for model in models if isinstance(model, nn.Module) for weight in model.parameters()]
        torch.npu.synchronize()
        freed = self.sleeping.sleep(WEIGHTS, weights, keep=level == 1)
        freed += self.sleeping.sleep(KV_CACHE, tensors_in(runner.kv_caches), keep=False)
        gc.collect()
        torch.npu.empty_cache()
        logger.info("Asleep at level %d: %s GiB of device memory freed", level, format_gib(freed))

    def wake_up(self, tags: list[str] | None = None) -> None:
        """Take the memory again; once nothing sleeps any more, capture the graphs anew.

        Args:
            tags: ``weights``, ``kv_cache`` or both; None for both.

        Raises:
            ValueError: a tag is another.
        """
        known = [WEIGHTS, KV_CACHE]
        if unknown := set(tags or ()) - set(known):
            raise ValueError(f"wake-up tags {sorted(unknown)} are unknown; use {' and '.join(known)}, or none for both")
        asleep = bool(self.sleeping.tags)
        for tag in known if tags is None else tags:
            self.sleeping.wake(tag)
        if not asleep or self.sleeping.tags:
            return
        self.model_runner.post_kv_cache_wake_up()
        if not self.model_config.enforce_eager:
            self.model_runner.capture_model()
