"""A bearer token in front of every path of the demo's server.

vLLM's own `--api-key` guards `/v1` only, and the demo switches vLLM's development endpoints on to ask the worker which
device it runs on; without this, any local user could call them while the demo runs.
"""

import hmac
import os

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

TOKEN_VARIABLE = "ASCEND_DEMO_TOKEN"


class RequireToken:
    """ASGI middleware (`vllm serve --middleware`): 401 unless the request carries the token from the environment."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._expected = f"Bearer {os.environ[TOKEN_VARIABLE]}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            given = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(given, self._expected):
                await PlainTextResponse("missing or wrong bearer token\n", status_code=401)(scope, receive, send)
                return
        await self._app(scope, receive, send)
