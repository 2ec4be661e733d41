"""The events that an engine publishes about its KV cache, as a subscriber gets them."""

import time
from collections.abc import Callable
from typing import Any

import msgspec
import zmq
from vllm.distributed.kv_events import KVEventBatch


class KVEventSubscriber:
    """Subscribes to an endpoint; to be made before the engine's first step."""

    def __init__(self, endpoint: str) -> None:
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.SUB)
        self._socket.connect(endpoint)
        self._socket.setsockopt(zmq.SUBSCRIBE, b"")
        self._decoder = msgspec.msgpack.Decoder(type=KVEventBatch)

    def wait_for(self, complete: Callable[[list[Any]], bool], seconds: float) -> list[Any]:
        """All events since the last call, until `complete` says of them that nothing is missing.

        Raises:
            TimeoutError: names the events that came.
        """
        events: list[Any] = []
        ends = time.monotonic() + seconds
        while not complete(events):
            if not self._socket.poll(max(0, int(1000 * (ends - time.monotonic())))):
                raise TimeoutError(f"after {seconds} s these events of the KV cache had come: {events}")
            # Topic, sequence number, payload.
            events += self._decoder.decode(self._socket.recv_multipart()[-1]).events
        return events

    def close(self) -> None:
        """End the subscription."""
        self._context.destroy(linger=0)
