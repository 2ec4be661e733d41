"""HCCL process groups over gloo.

A group made with `backend="hccl"` gets a gloo backend. The c10d kernels of the simulated device hand it the tensors'
memory as CPU tensors (csrc/dispatch/collectives.cpp).
"""

from datetime import timedelta
from typing import Any
from weakref import WeakKeyDictionary

import torch
import torch.distributed
from torch.distributed import distributed_c10d

_TIMEOUT = timedelta(minutes=10)
_GLOO_ALLGATHER: Any = torch.distributed.ProcessGroupGloo.allgather


class _Works:
    """Several pieces of communication, waited for as one."""

    def __init__(self, works: list[Any]) -> None:
        self._works = works

    def wait(self, timeout: Any = None) -> bool:
        """Wait for all of them."""
        for work in self._works:
            work.wait() if timeout is None else work.wait(timeout)
        return True

    def is_completed(self) -> bool:
        """Whether all have finished."""
        return all(work.is_completed() for work in self._works)


def batch_isend_irecv(
    self: torch.distributed.ProcessGroupGloo, kinds: list[str], tensors: list[torch.Tensor], ranks: list[int]
) -> _Works:
    """Start sends and receives of NPU tensors together, as torch_npu's ProcessGroupHCCL does.

    Args:
        kinds: "isend" or "irecv", one per tensor.
        tensors: contiguous NPU tensors to send from or receive into.
        ranks: the peers, as ranks of this group.
    """
    if torch.npu.is_current_stream_capturing():
        raise RuntimeError("batch_isend_irecv cannot be captured into a graph on the simulated NPU")
    torch.npu.current_stream().synchronize()
    operations = list(zip(kinds, [torch.ops.ascend_sim.alias(tensor) for tensor in tensors], ranks, strict=True))
    own = [(kind, item) for kind, item, rank in operations if rank == self.rank()]  # gloo does not send to itself
    sent, received = ([item for kind, item in own if kind == wanted] for wanted in ("isend", "irecv"))
    if len(sent) != len(received):
        raise RuntimeError(f"rank {self.rank()} sends itself {len(sent)} tensors and receives {len(received)}")
    for source, target in zip(sent, received):
        target.copy_(source)
    start = {"isend": self.send, "irecv": self.recv}
    return _Works([start[kind]([item], rank, 0) for kind, item, rank in operations if rank != self.rank()])


def allgather(
    self: torch.distributed.ProcessGroupGloo,
    outputs: list[list[torch.Tensor]],
    inputs: list[torch.Tensor],
    *options: Any,
) -> Any:
    """Gather tensors, also of different sizes, from every rank to every rank; NPU tensors by their memory.

    torch_npu calls it on the backend itself, for `torch.distributed.gather`.
    """
    if inputs[0].device.type != "npu":
        return _GLOO_ALLGATHER(self, outputs, inputs, *options)
    torch.npu.current_stream().synchronize()
    works = []
    for root, tensor in enumerate(outputs[0]):
        piece = torch.ops.ascend_sim.alias(tensor)
        if root == self.rank():
            piece.copy_(torch.ops.ascend_sim.alias(inputs[0]))
        broadcast = torch.distributed.BroadcastOptions()
        broadcast.rootRank = root
        works.append(self.broadcast([piece], broadcast))
    return _Works(works)


def _groups() -> dict[str, tuple[torch.distributed.ProcessGroup, Any]]:
    """This process's groups and their stores, by the names that :func:`get_hccl_comm_name` gives."""
    world = distributed_c10d._world
    return {f"hccl_{group.group_name}": (group, store) for group, (_, store) in world.pg_map.items()}


def get_hccl_comm_name(self: torch.distributed.ProcessGroupGloo, rankid: int, init_comm: bool = True) -> str:
    """The name by which operators that communicate themselves (``npu_moe_distribute_dispatch``, …) find the group."""
    for name, (group, _) in _groups().items():
        try:
            if group._get_backend(torch.device("npu")) is self:
                return name
        except RuntimeError:  # a group without NPUs
            continue
    raise RuntimeError("get_hccl_comm_name: this backend belongs to none of the process groups that exist")


_communicators: WeakKeyDictionary[torch.distributed.ProcessGroup, torch.distributed.ProcessGroupGloo] = (
    WeakKeyDictionary()
)


def communicator(name: str) -> torch.distributed.ProcessGroupGloo:
    """The backend for operators that communicate themselves, made by all ranks at their first such operator.

    It is another than the group's own, whose order of calls it must not disturb.
    """
    groups = _groups()
    if name not in groups:
        raise RuntimeError(f"no HCCL group of this process has the communicator name {name!r}: {', '.join(groups)}")
    group, store = groups[name]
    if group not in _communicators:
        prefixed = torch.distributed.PrefixStore("operators", store)
        _communicators[group] = torch.distributed.ProcessGroupGloo(prefixed, group.rank(), group.size(), _TIMEOUT)
    return _communicators[group]


def _create(options: Any, group_options: Any) -> torch.distributed.ProcessGroupGloo:
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
    # torch_npu calls these on the backend object. A subclass would not do: a backend that C++ holds comes back to
    # Python as its C++ class.
    torch.distributed.ProcessGroupGloo.batch_isend_irecv = batch_isend_irecv
    torch.distributed.ProcessGroupGloo.get_hccl_comm_name = get_hccl_comm_name
    torch.distributed.ProcessGroupGloo.allgather = allgather
