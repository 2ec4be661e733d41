"""Batches of sequences as operators take them: packed along the tokens, each token's heads side by side."""

from __future__ import annotations

import torch


def packed(
    operator: str, cu_seqlens: torch.Tensor | None, *tensors: torch.Tensor
) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
    """``cu_seqlens`` and the tensors without their batch dimension.

    Raises:
        ValueError: the first two dimensions of the tensors differ, or ``cu_seqlens`` comes with several rows.
    """
    batch, tokens = tensors[0].shape[:2]
    shapes = {tuple(tensor.shape[:2]) for tensor in tensors}
    if len(shapes) > 1:
        raise ValueError(f"{operator}: the first two dimensions [batch, tokens] differ: {sorted(shapes)}")
    if cu_seqlens is None:
        cu_seqlens = torch.arange(batch + 1, dtype=torch.int32, device=tensors[0].device) * tokens
    elif batch != 1:
        raise ValueError(f"{operator}: with cu_seqlens the sequences are packed into one row, but the batch is {batch}")
    return cu_seqlens, tuple(tensor.flatten(0, 1) for tensor in tensors)


def heads_together(tensor: torch.Tensor) -> torch.Tensor:
    """``[tokens, heads, channels]`` with every token's heads in one piece of memory; tokens may be strided."""
    if tensor.stride(2) == 1 and tensor.stride(1) == tensor.shape[2]:
        return tensor
    return tensor.contiguous()


def check_heads(operator: str, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
    """Refuse queries and keys of different shapes, and value heads that are no multiple of the key heads.

    Raises:
        ValueError: names the shapes.
    """
    if q.shape != k.shape or v.shape[-2] % k.shape[-2]:
        raise ValueError(
            f"{operator}: q {tuple(q.shape)} and k {tuple(k.shape)} must have one shape, and the heads of v "
            f"{tuple(v.shape)} be a multiple of theirs"
        )


def fake_outputs_and_states(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    g: torch.Tensor,
    beta: torch.Tensor,
    initial_state: torch.Tensor | None,
    cu_seqlens: torch.Tensor,
    *_: object,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Fake kernel of an operator that returns outputs like ``v`` and fp32 final states [sequences, heads, K, V]."""
    final = v.new_empty(cu_seqlens.shape[0] - 1, v.shape[1], q.shape[2], v.shape[2], dtype=torch.float32)
    return v.new_empty(v.shape), final
