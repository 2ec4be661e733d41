"""Causal depthwise convolution over packed sequences, and its continuation in slots of a state cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.mamba.causal_conv1d.calls import calls, update_calls
from ascend_kernels.ops.mamba.causal_conv1d.naive import causal_conv1d_naive, causal_conv1d_update_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.mamba.causal_conv1d.triton import causal_conv1d_triton

    return causal_conv1d_triton


def _update_triton() -> Callable[..., Any]:
    from ascend_kernels.ops.mamba.causal_conv1d.triton import causal_conv1d_update_triton

    return causal_conv1d_update_triton


def _fake(x: torch.Tensor, *_: object) -> torch.Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


_operator = register(
    "causal_conv1d(Tensor x, Tensor weight, Tensor? bias, Tensor(a!) state, Tensor cu_seqlens, Tensor read_slots, "
    "Tensor write_slots, Tensor? first_block, Tensor? last_block, Tensor? computed, int block_size, "
    "bool silu) -> Tensor",
    naive=causal_conv1d_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)
_update_operator = register(
    "causal_conv1d_update(Tensor x, Tensor weight, Tensor? bias, Tensor(a!) state, Tensor cu_seqlens, "
    "Tensor read_slots, Tensor write_slots, Tensor? num_accepted, bool silu) -> Tensor",
    naive=causal_conv1d_update_naive,
    triton=_update_triton,
    calls=update_calls,
    fake=_fake,
)


def _check(operator: str, x: torch.Tensor, weight: torch.Tensor, state: torch.Tensor, exact: bool) -> None:
    least = weight.shape[1] - 1
    rows = state.shape[1]
    if weight.shape[0] != x.shape[1] or state.shape[2] != x.shape[1] or rows < least or (exact and rows != least):
        raise ValueError(
            f"{operator}: x {tuple(x.shape)}, weight {tuple(weight.shape)} and state {tuple(state.shape)} do not fit: "
            f"expected are [tokens, channels], [channels, width] and [slots, {'' if exact else 'at least '}width - 1, "
            "channels]"
        )


def causal_conv1d(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    state: torch.Tensor,
    cu_seqlens: torch.Tensor,
    state_indices: torch.Tensor,
    has_initial_state: torch.Tensor | None = None,
    activation: str | None = "silu",
    *,
    initial_block: torch.Tensor | None = None,
    first_block: torch.Tensor | None = None,
    last_block: torch.Tensor | None = None,
    num_computed_tokens: torch.Tensor | None = None,
    block_size: int = 0,
) -> torch.Tensor:
    """Convolve every channel over the tokens of its sequence: ``y_t = act(sum_i w_i x_(t - width + 1 + i) + bias)``.

    The ``width - 1`` rows before a sequence come from its slot of the state; the last ones are left there.

    Args:
        x: fp16, bf16 or fp32 ``[tokens, channels]``, the sequences packed; tokens may be strided.
        weight: ``[channels, width]``, the last tap is the token's own.
        bias: ``[channels]`` or None.
        state: ``[slots, width - 1, channels]``, any strides, written in place.
        cu_seqlens: ``[sequences + 1]``.
        state_indices: int ``[sequences]``, the slot of each sequence; -1 for none, which reads as zeros. With prefix
            caching ``[sequences, blocks]``, the slots of each sequence's blocks of tokens.
        has_initial_state: bool ``[sequences]``; where False, what lies in the slot is not looked at. None: all True.
        activation: ``"silu"``, or None.
        initial_block: ``[sequences]``, prefix caching: the block whose slot holds the rows before the sequence;
        first_block: ``[sequences]``: the block of its first token;
        last_block: ``[sequences]``: the block of its last token, whose slot gets the last rows. The slots of the blocks
            before it, from ``first_block`` on, get the rows at the ends of those blocks.
        num_computed_tokens: ``[sequences]``: how many tokens came before.
        block_size: tokens per block, at least ``width - 1``.

    Returns:
        ``[tokens, channels]``, contiguous, in the dtype of ``x``. A sequence with no token changes nothing.

    Raises:
        ValueError: shapes that do not fit together, an unknown activation, or some of the five arguments of prefix
            caching without the others.
    """
    _check("causal_conv1d", x, weight, state, exact=True)
    blocks = (initial_block, first_block, last_block, num_computed_tokens)
    given = sum(tensor is not None for tensor in blocks)
    if given not in (0, len(blocks)) or (given > 0) != (state_indices.dim() == 2) or (given > 0) != (block_size > 0):
        raise ValueError(
            "causal_conv1d: initial_block, first_block, last_block, num_computed_tokens, block_size and state_indices "
            "with two dimensions come together or not at all"
        )
    slots = state_indices if state_indices.dim() == 2 else state_indices[:, None]
    if initial_block is None:
        read_slots = slots[:, 0]
    else:
        read_slots = slots.gather(1, initial_block.long().clamp(min=0)[:, None])[:, 0]
    if has_initial_state is not None:
        read_slots = torch.where(has_initial_state, read_slots, -1)
    silu = _is_silu("causal_conv1d", activation)
    return _operator(x, weight, bias, state, cu_seqlens, read_slots, slots, *blocks[1:], block_size, silu)


def causal_conv1d_update(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    state: torch.Tensor,
    cu_seqlens: torch.Tensor,
    state_indices: torch.Tensor,
    activation: str | None = "silu",
    *,
    write_indices: torch.Tensor | None = None,
    num_accepted: torch.Tensor | None = None,
) -> torch.Tensor:
    """The same convolution for the few tokens of a decoding step, in one kernel.

    Args:
        x: ``[tokens, channels]``, the tokens of all sequences packed.
        weight: ``[channels, width]``.
        bias: ``[channels]`` or None.
        state: ``[slots, rows, channels]`` with ``rows >= width - 1``, any strides, written in place. With drafts of up
            to ``d`` tokens ``rows`` is ``width - 1 + d``.
        cu_seqlens: ``[sequences + 1]``.
        state_indices: ``[sequences]``, slots to continue from; -1 reads as zeros.
        activation: ``"silu"``, or None.
        write_indices: ``[sequences]``, slots to leave the state in; default ``state_indices``. -1 writes nothing.
        num_accepted: ``[sequences]``, how many of the tokens that the last step left in the slot were accepted: the
            window of this step ends with the last of them. None: all rows count.

    Returns:
        ``[tokens, channels]``, contiguous, in the dtype of ``x``.

    Raises:
        ValueError: shapes that do not fit together, or an unknown activation.
    """
    _check("causal_conv1d_update", x, weight, state, exact=num_accepted is None)
    silu = _is_silu("causal_conv1d_update", activation)
    write_indices = state_indices if write_indices is None else write_indices
    return _update_operator(x, weight, bias, state, cu_seqlens, state_indices, write_indices, num_accepted, silu)


def _is_silu(operator: str, activation: str | None) -> bool:
    if activation not in (None, "silu", "swish"):
        raise ValueError(f"{operator}: activation {activation!r} is not known; 'silu' (also 'swish') and None are")
    return activation is not None
