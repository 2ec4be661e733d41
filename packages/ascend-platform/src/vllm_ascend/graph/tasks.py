"""Attention tasks inside a captured graph.

The vendor's fused attention takes the sequence lengths as host-side integer lists, which a capture would freeze. It is
therefore captured inside a *task group*, and before each replay the same operator is issued again with the new lengths
between ``graph_task_update_begin`` and ``graph_task_update_end``. A task knows the layer that issued it, so its lengths
come from that layer's own metadata.

Order: the update is enqueued on the stream that replays, before the replay; the stream itself then keeps a replay from
reading stale lengths, and no further events are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from vllm_ascend.graph.weak import weak_reference


class SequenceLengths(Protocol):
    """What a layer's attention metadata gives to its captured task."""

    num_tokens: int
    query_ends: list[int]
    seq_lens: list[int]


@dataclass(frozen=True, slots=True)
class FusedAttention:
    """A version of the fused attention operator: how to call it, and what it names its host-side lengths.

    ``max_workspace`` takes the same arguments and returns scratch memory that suffices for any lengths.
    """

    operator: Callable[..., Any]
    max_workspace: Callable[..., torch.Tensor]
    query_lengths: str
    kv_lengths: str


@dataclass(slots=True)
class AttentionTask:
    """One captured attention operator whose host-side lengths change at every replay."""

    layer_name: str
    handle: Any
    attention: FusedAttention
    arguments: dict[str, Any]


@dataclass(slots=True)
class GraphTasks:
    """The attention tasks of one captured graph, and the scratch memory that its layers share."""

    tasks: list[AttentionTask] = field(default_factory=list)
    workspaces: dict[Any, torch.Tensor] = field(default_factory=dict)

    def capture(
        self, layer_name: str, attention: FusedAttention, arguments: dict[str, Any], out: list[torch.Tensor]
    ) -> None:
        """Issue ``attention`` as an updatable task that writes ``out``.

        Layers of equal shape share one workspace: the layers of a graph run one after the other.
        """
        query, key = arguments["query"], arguments["key"]
        shape = (attention.operator, query.shape, key.shape, arguments["sparse_mode"])
        workspace = self.workspaces.get(shape)
        if workspace is None:
            workspace = self.workspaces[shape] = attention.max_workspace(**arguments)
        stream = torch.npu.current_stream()
        torch.npu.graph_task_group_begin(stream)
        attention.operator(**arguments, workspace=workspace, out=out)
        handle = torch.npu.graph_task_group_end(stream)
        # The graph pool may reuse the activations' memory for later layers, so the record must not own it.
        kept = {
            **arguments,
            "query": weak_reference(query),
            "workspace": workspace,
            "out": [weak_reference(tensor) for tensor in out],
        }
        self.tasks.append(AttentionTask(layer_name, handle, attention, kept))

    def update(self, metadata: Mapping[str, SequenceLengths], num_tokens: int, stream: Any) -> None:
        """Give every task the lengths of its layer; to be called on the replaying stream before the replay."""
        begin, end = torch.npu.graph_task_update_begin, torch.npu.graph_task_update_end
        for task in self.tasks:
            lengths = metadata[task.layer_name]
            if lengths.num_tokens != num_tokens:
                raise RuntimeError(
                    f"the graph was captured for {num_tokens} tokens, but the metadata of {task.layer_name} covers "
                    f"{lengths.num_tokens}"
                )
            attention, arguments = task.attention, task.arguments
            arguments[attention.query_lengths] = lengths.query_ends
            arguments[attention.kv_lengths] = lengths.seq_lens
            begin(stream, task.handle)
            attention.operator(**arguments)
            end(stream)


_recording: GraphTasks | None = None


def recording_tasks() -> GraphTasks:
    """The task list of the graph that is being captured."""
    if _recording is None:
        raise RuntimeError(
            "attention was captured outside of ACLGraphWrapper: its sequence lengths would be frozen into the graph. "
            "Capture the model through ACLGraphWrapper, or keep attention out of the captured region."
        )
    return _recording


@contextmanager
def record_tasks(tasks: GraphTasks) -> Iterator[None]:
    """Collect the attention tasks issued in this context in ``tasks``."""
    global _recording
    previous, _recording = _recording, tasks
    try:
        yield
    finally:
        _recording = previous
