"""One streamed chat completion over the OpenAI-compatible HTTP interface, with its timings."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass

import httpx


class ChatError(RuntimeError):
    """The server refused the request or broke the stream; the message quotes it."""


@dataclass(frozen=True)
class ChatAnswer:
    """Text and timings of an answer; times in seconds, measured at the client."""

    text: str
    completion_tokens: int
    seconds_to_first_token: float
    seconds_total: float

    @property
    def tokens_per_second(self) -> float | None:
        """Rate after the first token; None for an answer of one token."""
        decoding = self.seconds_total - self.seconds_to_first_token
        return (self.completion_tokens - 1) / decoding if self.completion_tokens > 1 and decoding > 0 else None


def stream_chat(
    client: httpx.Client,
    model: str,
    question: str,
    max_tokens: int,
    on_text: Callable[[str], None],
    system: str | None = None,
) -> ChatAnswer:
    """Ask `question` greedily and hand every piece of the answer to `on_text` as it arrives.

    `system` takes the place of the default system message in the model's chat template.

    Raises `ChatError` when the server answers with an error or the stream ends without a token count.
    """
    instructions = [] if system is None else [{"role": "system", "content": system}]
    request = {
        "model": model,
        "messages": [*instructions, {"role": "user", "content": question}],
        "temperature": 0,
        "max_tokens": max_tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    pieces: list[str] = []
    completion_tokens: int | None = None
    first: float | None = None
    start = last = time.perf_counter()
    try:
        with client.stream("POST", "/v1/chat/completions", json=request) as response:
            if response.status_code != httpx.codes.OK:
                body = response.read().decode(errors="replace")
                raise ChatError(f"the server answered {response.status_code}: {body}")
            for line in response.iter_lines():
                data = line.removeprefix("data: ")
                if not line.startswith("data: ") or data == "[DONE]":
                    continue
                event = json.loads(data)
                if "error" in event:
                    raise ChatError(f"the server broke the stream off: {event['error']}")
                if event.get("usage"):
                    completion_tokens = event["usage"]["completion_tokens"]
                for choice in event["choices"]:
                    if text := choice["delta"].get("content"):
                        last = time.perf_counter()
                        first = first or last
                        pieces.append(text)
                        on_text(text)
    except httpx.HTTPError as error:
        raise ChatError(f"the connection to the server failed: {error!r}") from error
    if completion_tokens is None:
        raise ChatError("the stream ended without its token count; the server stopped in the middle of the answer")
    return ChatAnswer("".join(pieces), completion_tokens, (first or last) - start, last - start)
