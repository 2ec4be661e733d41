"""Tensors over a graph pool's memory that do not keep it allocated."""

from __future__ import annotations

from typing import Any

import torch
from vllm.sequence import IntermediateTensors


def weak_reference(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor over the same memory that does not own it; empty tensors and other devices come back as they are."""
    if tensor.device.type != "npu" or tensor.numel() == 0:
        return tensor
    import torch_npu

    return torch_npu._C._weak_ref_tensor(tensor)


def weak_references(output: Any) -> Any:
    """``output`` with every tensor in it replaced by a weak one.

    Raises:
        TypeError: for a container that a captured callable may not return.
    """
    if isinstance(output, torch.Tensor):
        return weak_reference(output)
    if isinstance(output, (list, tuple)):
        return type(output)(weak_references(item) for item in output)
    if isinstance(output, IntermediateTensors):
        return IntermediateTensors({name: weak_reference(tensor) for name, tensor in output.tensors.items()})
    if output is None or isinstance(output, (bool, int, float, str)):
        return output
    raise TypeError(
        f"a captured callable returned {type(output).__name__}; tensors, sequences of them and IntermediateTensors can "
        "be returned from an ACL graph"
    )
