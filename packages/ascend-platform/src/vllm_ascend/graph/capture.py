"""The context in which vLLM's runner captures its graphs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from vllm.distributed.parallel_state import GraphCaptureContext


@contextmanager
def graph_capture(device: torch.device) -> Iterator[GraphCaptureContext]:
    """Run the body on a new stream that waits for what was enqueued before.

    vLLM's own context also prepares its custom all-reduce, which only its CUDA and XPU communicators have.
    """
    stream = torch.npu.Stream(device=device)
    stream.wait_stream(torch.npu.current_stream())
    with torch.npu.stream(stream):
        yield GraphCaptureContext(stream)
