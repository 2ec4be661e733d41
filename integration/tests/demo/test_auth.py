"""Every path of the demo's server asks for the token."""

import asyncio

import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from ascend_integration.demo.auth import TOKEN_VARIABLE, RequireToken

PATHS = ["/health", "/v1/chat/completions", "/collective_rpc"]


def status(path: str, headers: dict[str, str]) -> int:
    async def request() -> int:
        application = Starlette(routes=[Route(known, lambda _: PlainTextResponse("served")) for known in PATHS])
        transport = httpx.ASGITransport(RequireToken(application))
        async with httpx.AsyncClient(transport=transport, base_url="http://demo") as client:
            return (await client.get(path, headers=headers)).status_code

    return asyncio.run(request())


@pytest.mark.parametrize("path", PATHS)
def test_only_the_token_opens(path, monkeypatch):
    monkeypatch.setenv(TOKEN_VARIABLE, "secret")
    assert status(path, {}) == 401
    assert status(path, {"Authorization": "Bearer wrong"}) == 401
    assert status(path, {"Authorization": "secret"}) == 401
    assert status(path, {"Authorization": "Bearer secret"}) == 200
