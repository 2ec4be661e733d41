"""Capture and replay of a callable as ACL graphs, one per batch descriptor."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from vllm.compilation.counter import compilation_counter
from vllm.compilation.cuda_graph import CUDAGraphOptions, CUDAGraphWrapper
from vllm.compilation.monitor import validate_cudagraph_capturing_enabled
from vllm.config import CUDAGraphMode, VllmConfig
from vllm.forward_context import (
    BatchDescriptor,
    ForwardContext,
    get_forward_context,
    is_forward_context_available,
)
from vllm.logger import init_logger
from vllm.model_executor.offloader.base import get_offloader

from vllm_ascend.graph.streams import current_stream
from vllm_ascend.graph.tasks import GraphTasks, record_tasks
from vllm_ascend.graph.weak import weak_references

logger = init_logger(__name__)


@dataclass(slots=True)
class CapturedGraph:
    """A graph, what it returns, and what must be renewed or checked before a replay."""

    graph: torch.npu.NPUGraph
    output: Any
    tasks: GraphTasks
    input_addresses: list[int]


def tensor_addresses(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[int]:
    """Data pointers of the tensor arguments, keyword arguments in name order."""
    values = [*args, *(kwargs[name] for name in sorted(kwargs))]
    return [value.data_ptr() for value in values if isinstance(value, torch.Tensor)]


@contextmanager
def _without_collection() -> Iterator[None]:
    """Keep the garbage collector from running between the pieces of a piecewise capture."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class ACLGraphWrapper(CUDAGraphWrapper):
    """vLLM's static graph wrapper on ACL graphs.

    Construction, attribute access and bookkeeping are the base class's. A call whose forward context names this
    wrapper's runtime mode captures the first time it sees a batch descriptor and replays afterwards; any other call
    runs the callable as it is.
    """

    def __init__(
        self,
        runnable: Callable[..., Any],
        vllm_config: VllmConfig,
        runtime_mode: CUDAGraphMode,
        cudagraph_options: CUDAGraphOptions | None = None,
    ) -> None:
        super().__init__(runnable, vllm_config, runtime_mode, cudagraph_options)
        self.captured: dict[BatchDescriptor, CapturedGraph] = {}
        self.device_index = torch.npu.current_device()

    def clear_graphs(self) -> None:
        """Drop every captured graph; the next call of each batch descriptor captures anew."""
        super().clear_graphs()
        self.captured.clear()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not is_forward_context_available():
            return self.runnable(*args, **kwargs)
        context = get_forward_context()
        if context.cudagraph_runtime_mode != self.runtime_mode:
            return self.runnable(*args, **kwargs)
        descriptor = context.batch_descriptor
        if descriptor is None:
            raise RuntimeError(f"a forward in {self.runtime_mode.name} graph mode carries no batch descriptor")
        entry = self.captured.get(descriptor)
        if entry is None:
            return self._capture(descriptor, args, kwargs)
        if self.is_debugging_mode:
            self._check_addresses(descriptor, entry, args, kwargs)
        return self.replay(entry, context)

    def replay(self, entry: CapturedGraph, context: ForwardContext) -> Any:
        """Renew the host-side lengths of the graph's attention tasks, then replay it."""
        get_offloader().sync_prev_onload()
        if entry.tasks.tasks:
            metadata = context.attn_metadata
            if not isinstance(metadata, dict):
                raise RuntimeError(
                    "a full ACL graph needs one attention metadata dictionary; micro-batches have several"
                )
            entry.tasks.update(metadata, context.batch_descriptor.num_tokens, current_stream(self.device_index))
        entry.graph.replay()
        return entry.output

    def _capture(self, descriptor: BatchDescriptor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        validate_cudagraph_capturing_enabled()
        if self.cudagraph_options.debug_log_enable:
            logger.debug("Capturing an ACL graph on (%s, %s)", self.runtime_mode.name, descriptor)
        graph, tasks = torch.npu.NPUGraph(), GraphTasks()
        get_offloader().sync_prev_onload()
        collection = _without_collection() if self.cudagraph_options.gc_disable else nullcontext()
        with (
            collection,
            torch.npu.graph(graph, pool=self.graph_pool, stream=torch.npu.current_stream()),
            record_tasks(tasks),
        ):
            output = self.runnable(*args, **kwargs)
            get_offloader().join_after_forward()
            if self.cudagraph_options.weak_ref_output:
                # The caller consumes this output before any later graph of the pool overwrites it.
                output = weak_references(output)
        self.captured[descriptor] = CapturedGraph(graph, weak_references(output), tasks, tensor_addresses(args, kwargs))
        compilation_counter.num_cudagraph_captured += 1
        # Captured operators have not run; the strong reference keeps their memory until the capture of all is done.
        return output

    def _check_addresses(
        self, descriptor: BatchDescriptor, entry: CapturedGraph, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        given = tensor_addresses(args, kwargs)
        if given != entry.input_addresses:
            raise RuntimeError(
                f"the ACL graph for {descriptor} was captured with inputs at {entry.input_addresses} and is replayed "
                f"with inputs at {given}; a replay reads the captured addresses, so inputs must be persistent buffers"
            )
