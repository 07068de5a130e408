"""Who is answered, and what every answer forbids."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest
from served_viewer import ACCESS, TOKEN, serve_viewer
from stored_runs import FIRST


def test_another_host_name_is_refused_so_that_a_page_cannot_rebind_its_own(client: httpx2.Client) -> None:
    port = client.base_url.port
    for host in ("evil.example", f"evil.example:{port}", f"127.0.0.1.evil.example:{port}", "a@localhost@b", "[", ""):
        assert client.get("/", headers={"host": host}).status_code in (400, 421)
    for host in (f"localhost:{port}", "127.0.0.1:1", "[::1]:80", "LOCALHOST"):  # a tunnel may have another port
        assert client.get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("origin", [None, "null", "http://evil.example", "http://localhost:1", "file://"])
def test_a_request_that_writes_must_come_from_a_page_of_the_viewer(client: httpx2.Client, origin: str | None) -> None:
    headers = {} if origin is None else {"origin": origin}
    answer = client.post(f"/runs/{FIRST}/grade", headers=headers, data={"token": TOKEN})
    assert answer.status_code == 403


def test_other_methods_are_refused(client: httpx2.Client) -> None:
    assert client.request("DELETE", f"/runs/{FIRST}").status_code == 405
    assert client.request("OPTIONS", "/").status_code == 405


@pytest.mark.parametrize("address", ["/", f"/runs/{FIRST}", "/assets/viewer.js", "/nonsense"])
def test_every_answer_forbids_foreign_scripts_frames_and_guesses(client: httpx2.Client, address: str) -> None:
    headers = client.get(address).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert "access-control-allow-origin" not in headers


def test_pages_hold_no_script_of_their_own(client: httpx2.Client) -> None:
    text = client.get(f"/runs/{FIRST}").text
    assert text.count("<script") == text.count('<script src="/assets/viewer.js" defer></script>') == 1
    assert " onclick=" not in text


def test_every_page_needs_the_token_since_other_users_of_the_machine_can_connect_too(store: Path) -> None:
    with serve_viewer(store, token=False) as client:
        addresses = ["/", "/runs", f"/runs/{FIRST}", f"/runs/{FIRST}/labels.jsonl", "/events", "/grade", "/nonsense"]
        assert {client.get(address).status_code for address in addresses} == {403}
        origin = {"origin": str(client.base_url).rstrip("/")}
        assert client.post(f"/runs/{FIRST}/grade", headers=origin, data={"token": TOKEN}).status_code == 403
        assert client.get("/").status_code == 403
        assert client.get("/?token=wrong").status_code == 403
        assert client.get("/assets/viewer.js").status_code == 403
        assert client.get("/", headers={"cookie": f"{ACCESS.cookie}=wrong"}).status_code == 403
        entered = client.get(f"/runs/{FIRST}?token={TOKEN}&show=failed")
        assert entered.status_code == 303
        assert entered.headers["location"] == f"/runs/{FIRST}?show=failed"
        assert "HttpOnly; SameSite=Strict" in entered.headers["set-cookie"]
        assert client.get("/", headers={"cookie": f"{ACCESS.cookie}={TOKEN}"}).status_code == 200
        client.cookies.clear()
        elsewhere = client.get(f"{client.base_url}//evil.example/%0d%0ax?token={TOKEN}").headers["location"]
        assert elsewhere.startswith("/evil.example/")
        assert "\n" not in elsewhere
