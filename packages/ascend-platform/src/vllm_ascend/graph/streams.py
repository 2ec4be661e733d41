"""The current stream without the cost of asking for it.

``torch.npu.current_stream()`` builds a stream object through several layers of Python at every call; a decode step
needs it more than once. The identity behind it is one call into the extension.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch_npu

_streams: dict[tuple[int, int, int], Any] = {}


def current_stream(device_index: int) -> torch.npu.Stream:
    """The stream that work is enqueued on, as the object made for it the first time."""
    identity = torch_npu._C._npu_getCurrentStream(device_index)
    stream = _streams.get(identity)
    if stream is None:
        stream_id, index, device_type = identity
        stream = torch.npu.Stream(stream_id=stream_id, device_index=index, device_type=device_type)
        _streams[identity] = stream
    return stream


@contextmanager
def on_stream(stream: torch.npu.Stream, previous: torch.npu.Stream) -> Iterator[None]:
    """Enqueue on ``stream``, then on ``previous`` again; both belong to the current device."""
    torch.npu.set_stream(stream)
    try:
        yield
    finally:
        torch.npu.set_stream(previous)
