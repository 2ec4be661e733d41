"""Where a drafter samples if rejected tokens stay in the batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.spec_decode.padded_inputs.calls import calls
from ascend_kernels.ops.spec_decode.padded_inputs.naive import padded_inputs_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.spec_decode.padded_inputs.triton import padded_inputs_triton

    return padded_inputs_triton


def _fake(cu_num_drafts: torch.Tensor, *_: object) -> tuple[torch.Tensor, torch.Tensor]:
    requests = cu_num_drafts.shape[0]
    return cu_num_drafts.new_empty(requests, dtype=torch.int32), cu_num_drafts.new_empty(requests, dtype=torch.int32)


_operator = register(
    "padded_inputs(Tensor cu_num_drafts, Tensor valid_counts, Tensor query_start_loc) -> (Tensor, Tensor)",
    naive=padded_inputs_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def padded_inputs(
    cu_num_drafts: torch.Tensor, valid_counts: torch.Tensor, query_start_loc: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The last accepted row of each request, and how many rows behind it are rejected.

    The batch keeps its layout, so that nothing waits for the counts: ``rejected = drafts + 1 - valid`` where a request
    has drafts, else 0, and ``index = end of its rows - 1 - rejected``.

    Args:
        cu_num_drafts: int32 ``[requests]``, how many drafts this and the requests before it have; not decreasing.
        valid_counts: int32 ``[requests]``, emitted tokens (:func:`ascend_kernels.next_tokens`).
        query_start_loc: int32 ``[requests + 1]``, first row of each request, and the end of the last one's.

    Returns:
        int32 ``[requests]``: row indices; int32 ``[requests]``: rejected rows.

    Raises:
        ValueError: the shapes do not belong together.
    """
    requests = cu_num_drafts.shape[0]
    if valid_counts.shape != (requests,) or query_start_loc.shape != (requests + 1,):
        raise ValueError(
            f"padded_inputs: {requests} requests, counts {tuple(valid_counts.shape)} and query_start_loc "
            f"{tuple(query_start_loc.shape)}: one count for each, and one start more"
        )
    return _operator(cu_num_drafts, valid_counts, query_start_loc)
