"""What other clients raise: aiohttp, requests, boto3 and gRPC. They are tested next to Agno, in its environment."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from provider_contract import check_refused, raised_by, unused_url
from refusing_provider import OPENAI, RefusingProvider

from proctor.base.diagnosis import FailureKind

aiohttp = pytest.importorskip("aiohttp", reason="it is part of Agno's environment: make test-all")
boto3 = pytest.importorskip("boto3", reason="it is part of Agno's environment: make test-all")
grpc = pytest.importorskip("grpc", reason="it is part of Agno's environment: make test-all")
requests = pytest.importorskip("requests", reason="it is part of Agno's environment: make test-all")

pytestmark = pytest.mark.filterwarnings("ignore")

AGENT, PERMANENT, TRANSIENT = FailureKind


def get_with_aiohttp(url: str) -> Any:
    async def get() -> Any:
        async with aiohttp.ClientSession() as client, client.get(url, raise_for_status=True) as response:
            return await response.text()

    return asyncio.run(get())


def get_with_requests(url: str) -> Any:
    response = requests.get(url, timeout=5)
    response.raise_for_status()
    return response


def ask_bedrock(url: str, **keys: str) -> Any:
    from botocore.config import Config

    once = Config(retries={"max_attempts": 0})
    client = boto3.client("bedrock-runtime", region_name="eu-west-1", endpoint_url=url, config=once, **keys)
    return client.converse(modelId="m", messages=[])


def ask_bedrock_with_key(url: str) -> Any:
    return ask_bedrock(url, aws_access_key_id="k", aws_secret_access_key="s")


@pytest.mark.parametrize("call", [get_with_aiohttp, get_with_requests, ask_bedrock_with_key])
def test_a_client_of_http_services(provider: RefusingProvider, call: Any) -> None:
    found = {}
    for name in ("wrong key", "no permission", "busy", "overloaded", "unknown model"):
        provider.refusal = OPENAI[name]
        found[name] = raised_by(lambda: call(provider.url))
    assert [item.kind for item in found.values()] == [PERMANENT, PERMANENT, TRANSIENT, TRANSIENT, AGENT]
    assert (found["busy"].limited, found["busy"].retry_after) == (True, 7)
    check_refused(lambda: call(unused_url()))


def test_boto3_without_credentials(provider: RefusingProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    assert raised_by(lambda: ask_bedrock(provider.url)).cause == "the API key or login is missing"


def test_a_server_that_hangs_up_is_asked_again() -> None:
    async def ask() -> Any:
        async def hang_up(_: Any, writer: Any) -> None:
            writer.close()

        server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server, aiohttp.ClientSession() as client:
            return await client.get(f"http://127.0.0.1:{port}")

    assert raised_by(lambda: asyncio.run(ask())).kind is TRANSIENT


def test_grpc() -> None:
    def ask() -> Any:
        with grpc.insecure_channel(unused_url().removeprefix("http://")) as channel:
            return channel.unary_unary("/service/method")(b"", timeout=5)

    assert raised_by(ask).kind is TRANSIENT
