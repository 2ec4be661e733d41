"""Inputs of a drafter that proposes all its tokens at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.spec_decode.parallel_draft_inputs.calls import calls
from ascend_kernels.ops.spec_decode.parallel_draft_inputs.naive import parallel_draft_inputs_naive


class DraftInputs(NamedTuple):
    """Rows of a drafter, ``queries`` per request behind one another.

    Attributes:
        token_ids: int32 ``[requests * queries]``.
        positions: int64 ``[requests * queries]``.
        slots: int32 ``[requests * queries]``.
    """

    token_ids: torch.Tensor
    positions: torch.Tensor
    slots: torch.Tensor


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.spec_decode.parallel_draft_inputs.triton import parallel_draft_inputs_triton

    return parallel_draft_inputs_triton


def _fake(
    next_tokens: torch.Tensor, positions: torch.Tensor, *arguments: Any
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    rows = next_tokens.shape[0] * arguments[4]
    ids, slots = (next_tokens.new_empty(rows, dtype=torch.int32) for _ in range(2))
    return ids, positions.new_empty(rows), slots


_operator = register(
    "parallel_draft_inputs(Tensor next_tokens, Tensor positions, Tensor query_start_loc, Tensor? rejected, "
    "Tensor block_table, int block_size, int queries, int mask_token, int max_length, int pad) "
    "-> (Tensor, Tensor, Tensor)",
    naive=parallel_draft_inputs_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def parallel_draft_inputs(
    next_tokens: torch.Tensor,
    positions: torch.Tensor,
    query_start_loc: torch.Tensor,
    block_table: torch.Tensor,
    block_size: int,
    *,
    queries: int,
    mask_token: int,
    max_length: int,
    rejected: torch.Tensor | None = None,
    pad: int = -1,
) -> DraftInputs:
    """The rows with which a drafter proposes all its tokens in one pass: the next token, then masks.

    Row ``i`` of a request lies ``i + 1`` positions behind its last accepted row. A row beyond ``max_length`` has the
    last position and the slot ``pad``, so that it is harmless.

    Args:
        next_tokens: int32 or int64 ``[requests]`` (:func:`ascend_kernels.next_tokens`).
        positions: int64 ``[tokens]``, positions of the target's rows, below 2**31.
        query_start_loc: int32 ``[requests + 1]``, first row of each request, and the end of the last one's; every
            request has an accepted row.
        block_table: int32 ``[>= requests, blocks]``, page numbers of the drafter's own cache; neighbouring columns.
        block_size: tokens per page, of the kernels and not of the cache's manager where the two differ.
        queries: rows per request, the next token and the masks, at least 1.
        mask_token: the id of a mask.
        max_length: tokens that a sequence may have.
        rejected: int32 ``[requests]``, rejected rows at the end of each request
            (:func:`ascend_kernels.padded_inputs`); None: none.
        pad: the slot of rows that store nothing.

    Returns:
        Token ids, positions and slots.

    Raises:
        ValueError: the shapes do not belong together, or a number is impossible.
    """
    requests = next_tokens.shape[0]
    if query_start_loc.shape != (requests + 1,) or (rejected is not None and rejected.shape != (requests,)):
        raise ValueError(
            f"parallel_draft_inputs: {requests} requests, query_start_loc {tuple(query_start_loc.shape)}, rejected "
            f"{None if rejected is None else tuple(rejected.shape)}: one start more than requests, one count for each"
        )
    if block_table.dim() != 2 or block_table.shape[0] < requests or queries < 1 or max_length < 1:
        raise ValueError(
            f"parallel_draft_inputs: block_table {tuple(block_table.shape)}, queries {queries}, max_length "
            f"{max_length}: a row for each of {requests} requests and numbers of at least 1 are needed"
        )
    return DraftInputs(
        *_operator(
            next_tokens, positions, query_start_loc, rejected, block_table, block_size, queries, mask_token, max_length,
            pad,
        )
    )  # fmt: skip
