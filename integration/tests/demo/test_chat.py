"""The chat client against a local server that answers with given bytes."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from ascend_integration.demo.chat import ChatError, stream_chat

Start = Callable[..., httpx.Client]


def event(**content: object) -> bytes:
    return f"data: {json.dumps({'choices': [], **content})}\n\n".encode()


def delta(text: str) -> bytes:
    return event(choices=[{"index": 0, "delta": {"content": text}}])


@pytest.fixture
def start() -> Iterator[Start]:
    """`start(pieces, status=200, pause=0)`: a client of a server that sends these pieces, a pause before each."""
    servers: list[ThreadingHTTPServer] = []
    clients: list[httpx.Client] = []

    def begin(pieces: list[bytes], status: int = 200, pause: float = 0.0) -> httpx.Client:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(status)
                self.end_headers()
                for piece in pieces:
                    time.sleep(pause)
                    self.wfile.write(piece)
                    self.wfile.flush()

            def log_message(self, *_: object) -> None:
                """Keep the test's output clean."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        clients.append(httpx.Client(base_url=f"http://127.0.0.1:{server.server_port}", timeout=5, trust_env=False))
        return clients[-1]

    yield begin
    for client in clients:
        client.close()
    for server in servers:
        server.shutdown()
        server.server_close()


def test_pieces_arrive_in_order_with_their_timing(start):
    pieces = [
        delta("The capital"),
        delta(" is"),
        delta(" Paris."),
        event(usage={"completion_tokens": 5}),
        b"data: [DONE]\n\n",
    ]
    seen = []
    client = start(pieces, pause=0.1)
    begin = time.perf_counter()
    answer = stream_chat(client, "m", "?", 8, seen.append)
    wall = time.perf_counter() - begin
    assert seen == ["The capital", " is", " Paris."]
    assert answer.text == "The capital is Paris."
    assert answer.completion_tokens == 5
    # The server pauses 0.1 s before each of the five pieces; three of them are text.
    decoding = answer.seconds_total - answer.seconds_to_first_token
    assert answer.seconds_to_first_token >= 0.1
    assert decoding >= 0.19
    assert answer.seconds_total <= wall - 0.19
    assert answer.tokens_per_second == pytest.approx(4 / decoding)


def test_an_answer_of_one_token_has_no_rate(start):
    answer = stream_chat(start([delta("Paris"), event(usage={"completion_tokens": 1})]), "m", "?", 1, print)
    assert answer.tokens_per_second is None


@pytest.mark.parametrize(
    ("pieces", "status", "message"),
    [
        ([b'{"error": {"message": "no such model"}}'], 404, "answered 404: .*no such model"),
        ([delta("The"), event(error={"message": "engine died"})], 200, "broke the stream off: .*engine died"),
        ([delta("The capital")], 200, "ended without its token count"),
    ],
    ids=["refused", "error-in-stream", "cut-off"],
)
def test_failures_are_quoted(start, pieces, status, message):
    with pytest.raises(ChatError, match=message):
        stream_chat(start(pieces, status), "m", "?", 8, lambda text: None)


def test_no_server_is_an_error():
    client = httpx.Client(base_url="http://127.0.0.1:9", timeout=2, trust_env=False)
    with client, pytest.raises(ChatError, match="connection to the server failed"):
        stream_chat(client, "m", "?", 8, lambda text: None)
