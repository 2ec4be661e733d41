"""Inputs of a step in which every request computes one token."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.inputs.decode_inputs.calls import calls
from ascend_kernels.ops.inputs.decode_inputs.naive import decode_inputs_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.inputs.decode_inputs.triton import decode_inputs_triton

    return decode_inputs_triton


_operator = register(
    "decode_inputs(Tensor staged, Tensor? previous_tokens, Tensor block_table, int block_size, "
    "Tensor(a!) input_ids, Tensor(b!) positions, Tensor(c!) seq_lens, Tensor(d!) slots, int pad) -> ()",
    naive=decode_inputs_naive,
    triton=_triton,
    calls=calls,
)


def decode_inputs(
    staged: torch.Tensor,
    previous_tokens: torch.Tensor | None,
    block_table: torch.Tensor,
    block_size: int,
    input_ids: torch.Tensor,
    positions: torch.Tensor,
    seq_lens: torch.Tensor,
    slots: torch.Tensor,
    pad: int = -1,
) -> None:
    """Write the device inputs of a decode step from one staged host copy.

    With ``position, source, token = staged`` per row: the row's input token is ``previous_tokens[source]`` if
    ``source >= 0`` and ``token`` otherwise, its position ``position``, its sequence length ``position + 1``, its slot
    ``block_table[row, position // block_size] * block_size + position % block_size``. A negative position marks a
    padding row: token 0, position 0, length 0, slot ``pad``.

    Args:
        staged: int32 ``[3, rows]``, contiguous: positions, sources, tokens.
        previous_tokens: int32 or int64 ``[previous rows, ...]``, last step's samples; the first element of a row
            counts. None if every source is negative.
        block_table: int32 ``[>= rows, blocks]``, page numbers.
        block_size: tokens per page.
        input_ids: int32 ``[>= rows]``, written in place, as are the following.
        positions: int64 ``[>= rows]``.
        seq_lens: int32 ``[>= rows]``.
        slots: int32 or int64 ``[>= rows]``.
        pad: slot of a padding row.
    """
    _operator(staged, previous_tokens, block_table, block_size, input_ids, positions, seq_lens, slots, pad)
