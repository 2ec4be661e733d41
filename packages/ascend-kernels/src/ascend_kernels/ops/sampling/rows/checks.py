"""Checks that the public functions of the family share."""

from __future__ import annotations

import torch


def check_requests(
    operator: str, logits: torch.Tensor, request_of_row: torch.Tensor | None, **per_request: torch.Tensor | None
) -> None:
    """Refuse logits that are no matrix, and vectors that do not have one element per row or request.

    Raises:
        ValueError: names the operator, the vector and both shapes.
    """
    if logits.dim() != 2 or logits.shape[1] == 0:
        raise ValueError(f"{operator}: logits {tuple(logits.shape)}: [rows, vocab] is needed, with a vocabulary")
    rows = logits.shape[0]
    if request_of_row is not None and request_of_row.shape != (rows,):
        raise ValueError(
            f"{operator}: request_of_row {tuple(request_of_row.shape)}: one request for each of {rows} rows"
        )
    lengths = set()
    for name, vector in per_request.items():
        if vector is None:
            continue
        lengths.add(vector.shape[0] if vector.dim() else None)
        if vector.dim() != 1 or (request_of_row is None and vector.shape[0] < rows) or len(lengths) > 1:
            raise ValueError(
                f"{operator}: {name} {tuple(vector.shape)} with logits {tuple(logits.shape)}: one element per request "
                "is needed, and without request_of_row at least as many requests as rows"
            )


def check_in_place(operator: str, logits: torch.Tensor) -> None:
    """Refuse logits that a kernel cannot write row by row.

    Raises:
        ValueError: names the strides.
    """
    if logits.shape[1] > 1 and logits.stride(1) != 1:
        raise ValueError(
            f"{operator}: logits with strides {logits.stride()}: they are written in place, so their columns must be "
            "neighbours; pass a contiguous tensor"
        )
