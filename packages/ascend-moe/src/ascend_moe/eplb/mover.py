"""Moving experts between ranks over HCCL while the layer goes on to serve with its present placement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.distributed as dist

from ascend_moe.eplb.transfer import LayerTransfers


class TransferError(RuntimeError):
    """Experts could not be moved; the present placement and its weights are as they were."""


@dataclass(frozen=True)
class Received:
    """Experts that came and are not in use yet.

    Attributes:
        layer: whose they are.
        experts: by slot, every tensor of the expert.
    """

    layer: int
    experts: Mapping[int, Mapping[str, torch.Tensor]]


class ExpertMover:
    """Moves the experts of layers in two steps: :meth:`receive` changes nothing that serves, :meth:`commit` does.

    Args:
        group: an HCCL group of all ranks that hold experts.
        control: a group of the same ranks on the CPU, on which they agree whether all have received.
    """

    def __init__(self, group: dist.ProcessGroup, control: dist.ProcessGroup) -> None:
        self._group, self._control, self._rank = group, control, dist.get_rank(group)

    def check(self, layer: int, tensors: Mapping[str, torch.Tensor]) -> None:
        """Compare what the ranks call an expert's tensors; to be called once for a layer, by all ranks.

        Args:
            layer: for messages.
            tensors: every tensor of the layer's experts by name, weights and **scales and biases with them**, each
                [slots, …].

        Raises:
            ValueError: tensors whose names, dtypes or shapes differ from rank 0's, as a rank would then wait for what
                nobody sends; names the rank and both.
        """
        mine = {name: f"{it.dtype} {list(it.shape)}" for name, it in sorted(tensors.items())}
        everyones: list[dict[str, str]] = [{}] * dist.get_world_size(self._control)
        dist.all_gather_object(everyones, mine, group=self._control)
        for rank, theirs in enumerate(everyones):
            if theirs != everyones[0]:
                raise ValueError(f"layer {layer}: rank {rank} has the tensors {theirs}, rank 0 has {everyones[0]}")

    def receive(self, transfers: LayerTransfers, tensors: Mapping[str, torch.Tensor]) -> Received:
        """Exchange experts into memory of their own; returns when every rank has all of its own.

        Raises:
            TransferError: a rank did not send, receive or answer; names the layer and who was involved.
        """
        buffers: dict[int, dict[str, torch.Tensor]] = {}
        operations: list[dist.P2POp] = []
        # Both sides of a pair go through the transfers in the same order.
        for it in transfers.transfers:
            if it.source == self._rank:
                operations += [
                    dist.P2POp(dist.isend, tensors[name][it.source_slot].contiguous(), group=self._group,
                               group_peer=it.target)
                    for name in sorted(tensors)
                ]  # fmt: skip
            if it.target == self._rank:
                own = {name: torch.empty_like(tensors[name][it.target_slot]) for name in sorted(tensors)}
                buffers[it.target_slot] = own
                operations += [
                    dist.P2POp(dist.irecv, buffer, group=self._group, group_peer=it.source) for buffer in own.values()
                ]
        try:
            for work in dist.batch_isend_irecv(operations) if operations else []:
                work.wait()
            torch.npu.current_stream().synchronize()
            self._agree()
        except RuntimeError as error:
            involved = {it.source for it in transfers.receives(self._rank)}
            involved |= {it.target for it in transfers.sends(self._rank)}
            raise TransferError(
                f"layer {transfers.layer}: rank {self._rank} could not exchange experts with the ranks "
                f"{sorted(involved)}: {error}. The present placement goes on to serve"
            ) from error
        return Received(transfers.layer, buffers)

    def _agree(self) -> None:
        """Wait until every rank has received; a rank that is gone makes it fail on all others."""
        dist.barrier(group=self._control)

    @staticmethod
    def commit(received: Received, tensors: Mapping[str, torch.Tensor]) -> None:
        """Write the experts to their slots, in order with the work of the current stream.

        All ranks do this between the same two steps, and switch the layer's map on the same stream: so no step sees
        the one without the other, and no two ranks disagree where an expert is.
        """
        for slot, own in received.experts.items():
            for name, value in own.items():
                tensors[name][slot].copy_(value)
