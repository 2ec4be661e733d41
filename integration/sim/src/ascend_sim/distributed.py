"""HCCL process groups over gloo.

A group made with `backend="hccl"` gets a gloo backend. The c10d kernels of the simulated device hand it the tensors'
memory as CPU tensors (csrc/dispatch/collectives.cpp).
"""

from typing import Any

import torch
import torch.distributed
from torch.distributed import distributed_c10d


def _create(options: Any, group_options: Any) -> Any:
    """Make a group's backend; `group_options` (ProcessGroupHCCL.Options) tunes hardware and has no effect."""
    return torch.distributed.ProcessGroupGloo(
        options.store, options.group_rank, options.group_size, timeout=options.timeout
    )


def install() -> None:
    """Replace the constructor that torch_npu has registered for "hccl"."""
    if not torch.distributed.is_available():
        return
    backend = distributed_c10d.Backend
    if "HCCL" not in backend._plugins:
        raise RuntimeError("torch_npu has not registered the backend 'hccl' with torch.distributed")
    backend._plugins["HCCL"] = backend._BackendPlugin(_create, True)
