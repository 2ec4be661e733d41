"""``torch.cuda`` in vLLM's model runner means the accelerator: there it becomes ``torch.npu``."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch

from vllm_ascend.patch import patch


class NpuAsCuda(ModuleType):
    """``torch.npu`` under the names of ``torch.cuda``."""

    def __getattr__(self, name: str) -> Any:
        if name == "CUDAGraph":
            return torch.npu.NPUGraph
        if name == "OutOfMemoryError":
            return torch.OutOfMemoryError
        try:
            value = getattr(torch.npu, name)
        except AttributeError as error:
            raise AttributeError(f"torch.cuda.{name} was used on an NPU, and torch.npu has no {name!r}") from error
        setattr(self, name, value)
        return value


class TorchOnNpu(ModuleType):
    """``torch`` with another ``cuda``; torch itself stays as it is."""

    def __init__(self) -> None:
        super().__init__("torch", "torch whose cuda namespace is the NPU's")
        self.__dict__.update(vars(torch))
        self.cuda = NpuAsCuda("torch.cuda")

    def __getattr__(self, name: str) -> Any:
        # Only names that torch creates on first use get here.
        return getattr(torch, name)


TORCH_ON_NPU = patch(
    target="vllm.v1.worker.gpu_model_runner:torch",
    stage="worker",
    reason="vLLM's runner makes its streams, events and memory queries through torch.cuda and has no hook for them; "
    "replacing one module's name leaves torch untouched for everyone else",
    versions=">=0.23,<0.24",
    module="torch",
)(TorchOnNpu())
