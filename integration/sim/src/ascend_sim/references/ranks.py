# SPDX-License-Identifier: Apache-2.0
"""Communication between simulated ranks for operators that name an HCCL group."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ascend_sim import distributed
from ascend_sim.references import limits


class Ranks:
    """The ranks of a group.

    Args:
        op: The operator that asks, for messages.
        name: The group's name, from the backend's ``get_hccl_comm_name``.
        size: How many ranks the operator was told of.
        rank: This rank as the operator was told, if it was.
    """

    def __init__(self, op: str, name: str, size: int | None = None, rank: int | None = None) -> None:
        self._backend: Any = distributed.communicator(name)
        self.rank: int = self._backend.rank()
        self.size: int = self._backend.size()
        for argument, given, actual in (("world size", size, self.size), ("rank", rank, self.rank)):
            if given is not None and given != actual:
                raise limits.refuse(op, argument, given, f"{actual}, that of group {name}")

    def gather(self, tensor: Tensor) -> Tensor:
        """Every rank's ``tensor``, which has the same shape on all, along a new first dimension."""
        sent = tensor.contiguous()
        received = [torch.empty_like(sent) for _ in range(self.size)]
        self._backend.allgather([received], [sent]).wait()
        return torch.stack(received)

    def exchange(self, rows: Tensor, send: list[int], receive: list[int]) -> Tensor:
        """Send consecutive ``rows``, ``send[r]`` to rank r, and receive ``receive[r]`` rows from each."""
        sent = rows.contiguous()
        width = (
            sent[:1].numel() * sent.itemsize if len(sent) else rows.new_empty(rows.shape[1:]).numel() * sent.itemsize
        )
        received = torch.empty(sum(receive), *rows.shape[1:], dtype=rows.dtype)
        if self.size == 1:
            return received.copy_(sent)
        self._backend.alltoall_base(
            received.view(torch.uint8).view(-1, width),
            sent.view(torch.uint8).view(-1, width),
            receive,
            send,
        ).wait()
        return received

    def sum(self, tensor: Tensor) -> Tensor:
        """The sum over ranks of a tensor, in its dtype."""
        total = tensor.clone(memory_format=torch.contiguous_format)
        self._backend.allreduce([total]).wait()
        return total
