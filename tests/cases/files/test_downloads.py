"""Files that are fetched: from servers that are slow, endless, wrong or elsewhere, and from what was kept of them."""

from __future__ import annotations

import http.server
import io
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.cases.files.downloads import _seconds_fresh
from proctor.cases.files.file_reader import FileReader
from proctor.cases.files.file_text import UnreadableFile
from proctor.cases.suite import AttachedFile, FileSettings

Answer = Callable[[http.server.BaseHTTPRequestHandler], None]


class Server:
    """A loopback server that answers each path as it is told to, and counts who asks."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.asked: list[str] = []
        self.over = threading.Event()
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.asked.append(self.path)
                try:
                    server.answers[self.path.partition("?")[0]](self)
                except OSError:
                    self.close_connection = True

            def log_message(self, *args: Any) -> None: ...

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.http.server_port}"

    def says(self, path: str, body: bytes = b"", status: int = 200, **headers: str) -> str:
        def answer(request: http.server.BaseHTTPRequestHandler) -> None:
            request.send_response(status)
            for name, value in {"Content_Length": str(len(body)), **headers}.items():
                request.send_header(name.replace("_", "-"), value)
            request.end_headers()
            request.wfile.write(body)

        self.answers[path] = answer
        return self.address + path


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.http.serve_forever)
    thread.start()
    yield server
    server.over.set()
    server.http.shutdown()
    thread.join()
    server.http.server_close()


def fetched(url: str, cache: Path | None = None, seconds: float = 30.0, kind: str | None = None, **options: Any) -> str:
    settings = FileSettings(fetch_seconds=seconds, cache=cache)
    return FileReader(Path(), settings).read(AttachedFile(url=url, kind=kind, options=options)).text


def complaint(url: str, cache: Path | None = None, seconds: float = 30.0) -> str:
    with pytest.raises(UnreadableFile) as caught:
        fetched(url, cache, seconds)
    return str(caught.value)


def test_a_server_that_does_not_answer_is_given_up_on(server: Server) -> None:
    server.answers["/slow"] = lambda request: server.over.wait() and None
    assert "was not downloaded within 0.2 s" in complaint(f"{server.address}/slow", seconds=0.2)


def test_a_server_that_answers_drop_by_drop_is_given_up_on(server: Server) -> None:
    def drip(request: http.server.BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.end_headers()
        while not server.over.wait(0.01):
            request.wfile.write(b".")

    server.answers["/drip"] = drip
    assert "was not downloaded within 0.2 s" in complaint(f"{server.address}/drip", seconds=0.2)


def test_an_endless_file_is_cut_off_at_the_limit(server: Server, tmp_path: Path) -> None:
    def flood(request: http.server.BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.end_headers()
        while not server.over.is_set():
            request.wfile.write(b"x" * 2**20)

    server.answers["/flood"] = flood
    assert "has more than 20 MB" in complaint(f"{server.address}/flood", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_connection_that_breaks_off_is_tried_once_more(server: Server) -> None:
    url = server.says("/short", b"four", Content_Length="400")
    assert "cannot be downloaded" in complaint(url)
    assert server.asked == ["/short", "/short"]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 429, 500, 503, 304])
def test_what_a_server_refuses_is_told_with_its_number(server: Server, tmp_path: Path, status: int) -> None:
    assert complaint(server.says("/no", status=status), tmp_path).endswith(f"the server responded with {status}")
    assert server.asked == ["/no"]


def test_a_redirect_is_followed_to_another_host_but_not_to_a_file(server: Server, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    other = server.says("/there", b"words").replace("127.0.0.1", "localhost")
    assert fetched(server.says("/here", status=302, Location=other)) == "words"
    assert "cannot be downloaded" in complaint(server.says("/file", status=302, Location=secret.as_uri()))
    assert "cannot be downloaded" in complaint(server.says("/round", status=302, Location="/round"))


@pytest.mark.parametrize(
    "url",
    ["http://", "http://\ud800/", "http://x:99999/", "http://a b/", "http://\0/", "HTTP://127.0.0.1:1/", "http://.."],
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    assert "cannot be downloaded" in complaint(url)


def test_the_kind_is_told_by_the_name_and_not_by_the_query(server: Server) -> None:
    pytest.importorskip("pypdf")
    page = b"<!DOCTYPE html><title>Log in</title>"
    assert complaint(server.says("/a.pdf", page) + "?version=1.2").endswith("is read as pdf, but is an HTML page")
    assert fetched(server.says("/page", page)) == "Log in"


def test_other_pages_of_a_kept_file_are_read_from_what_is_kept(server: Server, tmp_path: Path) -> None:
    pptx = pytest.importorskip("pptx")
    show = pptx.Presentation()
    for title in ("Start", "Middle", "End"):
        show.slides.add_slide(show.slide_layouts[0]).shapes.title.text = title
    out = io.BytesIO()
    show.save(out)
    url = server.says("/a.pptx", out.getvalue(), Cache_Control="max-age=600")
    assert fetched(url, tmp_path, pages=[1]) == "[slide 1]\nStart"
    assert fetched(url, tmp_path, pages=[2]) == "[slide 2]\nMiddle"
    assert fetched(url, tmp_path).endswith("End")
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "headers",
    [
        {"Cache_Control": "max-age=0"},
        {"Cache_Control": "max-age=60", "Age": "60"},
        {"Cache_Control": "No-Store"},
        {"Expires": "Thu, 01 Jan 1970 00:00:00 GMT"},
        {"Expires": "0"},
        {"Cache_Control": "max-age=\xb2", "ETag": '"\xfc"'},
    ],
)
def test_a_file_that_is_no_longer_fresh_is_fetched_again(
    server: Server, tmp_path: Path, headers: dict[str, str]
) -> None:
    assert fetched(server.says("/a", b"one", **headers), tmp_path) == "one"
    assert fetched(server.says("/a", b"two", **headers), tmp_path) == "two"
    assert len(server.asked) == 2


def test_a_kept_file_that_was_changed_is_not_believed(server: Server, tmp_path: Path) -> None:
    url = server.says("/a", b"one", Cache_Control="max-age=600")
    assert fetched(url, tmp_path) == "one"
    next(tmp_path.glob("*.bin")).write_bytes(b"eno")
    assert fetched(url, tmp_path) == "one"
    next(tmp_path.glob("*.json")).write_text("[" * 100_000)
    assert fetched(url, tmp_path) == "one"
    assert len(server.asked) == 3


def test_a_cache_that_cannot_be_written_costs_only_time(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    url = server.says("/a", b"one", ETag='"1"')
    assert [fetched(url, tmp_path / "file" / "cache") for _ in range(2)] == ["one", "one"]


def test_a_file_whose_server_stopped_keeping_is_forgotten(server: Server, tmp_path: Path) -> None:
    assert fetched(server.says("/a", b"one", Cache_Control="no-cache", ETag='"1"'), tmp_path) == "one"
    assert fetched(server.says("/a", b"two", Cache_Control="no-store"), tmp_path) == "two"
    assert list(tmp_path.glob("*.json")) == []


@given(st.dictionaries(st.sampled_from(["cache-control", "expires", "age"]), st.text()))
def test_whatever_a_server_says_of_freshness_is_a_time(headers: dict[str, str]) -> None:
    assert _seconds_fresh(headers) >= 0.0
