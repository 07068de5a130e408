from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.cases.files.file_reader import FileReader, with_files
from proctor.cases.files.file_text import ReadLimits, UnreadableFile
from proctor.cases.files.html_text import html_to_text
from proctor.cases.suite import AttachedFile, FileSettings


def reading(folder: Path, name: str, content: bytes, **rest: Any) -> Any:
    (folder / name).write_bytes(content)
    return FileReader(folder).read(AttachedFile(path=name, **rest))


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("a.txt", "grün".encode(), "grün"),
        ("a.txt", b"\xef\xbb\xbfmarked", "marked"),
        ("a.txt", "wide".encode("utf-16"), "wide"),
        ("a.txt", b"caf\xe9", "café"),
        ("a.csv", b"a,b\n1,2\n", "a,b\n1,2\n"),
        ("a.json", b'{"a": 1}', '{"a": 1}'),
        ("a.md", b"# Head", "# Head"),
        (
            "a.html",
            b"<title>T</title><p>One <b>two</b></p><script>no()</script><p>&lt;three&gt;",
            "T\nOne two\n<three>",
        ),
    ],
)
def test_text_is_read_as_it_is_written(tmp_path: Path, name: str, content: bytes, text: str) -> None:
    assert reading(tmp_path, name, content).text == text


@pytest.mark.parametrize(
    ("name", "content", "rest", "complaint"),
    [
        ("a.bin", b"\x00\x01\x80", {}, "is not text"),
        ("a.txt", b"x", {"options": {"pages": [1]}}, "is read as text, which does not support 'pages'"),
        ("a.pdf", b"not a pdf", {}, "a.pdf"),
    ],
)
def test_what_cannot_be_read_says_why(
    tmp_path: Path, name: str, content: bytes, rest: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(UnreadableFile, match=complaint):
        reading(tmp_path, name, content, **rest)


def test_a_file_that_is_gone_or_too_large_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="cannot be read"):
        FileReader(tmp_path).read(AttachedFile(path="gone.txt"))
    with (tmp_path / "large.txt").open("wb") as file:
        file.truncate(21 * 2**20)
    with pytest.raises(UnreadableFile, match="more than 20 MB"):
        FileReader(tmp_path).read(AttachedFile(path="large.txt"))


@pytest.mark.parametrize("name", ["empty.txt", "EMPTY.HTML", "empty"])
def test_a_file_without_text_says_so(tmp_path: Path, name: str) -> None:
    found = reading(tmp_path, name, b" \n")
    assert found.text.strip() == ""
    assert found.notes == (f"the file {name}: has no text",)


def test_a_file_tells_where_it_is_from_and_what_of_it_was_read(tmp_path: Path) -> None:
    found = reading(tmp_path, "a.txt", b"four", options={"cache": False})
    assert found.metadata == {"path": "a.txt", "type": "text", "size_bytes": 4}
    assert found.seconds >= 0.0


@given(st.text())
def test_any_page_is_read_to_its_end(page: str) -> None:
    text = html_to_text(page)
    assert all(line.strip() for line in text.split("\n")) or text == ""


MARKS = ("<p>", "</p>", "<td class='x'>", "<script>a<b</script>", "<!-- no -->", "&amp;", "&#60;", "words", "\n", " ")


@given(st.lists(st.sampled_from(MARKS)).map("".join), st.integers(1, 9))
def test_a_page_that_is_read_in_pieces_says_the_same(page: str, piece: int) -> None:
    assert html_to_text(page, chunk=piece) == html_to_text(page)


def test_a_page_that_takes_too_long_is_given_up_on() -> None:
    with pytest.raises(UnreadableFile, match="takes too long to read: 0 of 3 characters were read in time"):
        html_to_text("<p>", ReadLimits(until=0.0))


def test_files_are_set_out_below_the_message() -> None:
    said = with_files(
        "Summarise.", [(AttachedFile(path="a.txt", description="the deed", options={"pages": [2]}), "x\n")]
    )
    assert said == "Summarise.\n\n--- file: a.txt (pages 2): the deed\nx\n--- end of file: a.txt"


class Site(http.server.BaseHTTPRequestHandler):
    requests: list[dict[str, str]]
    body = b"one"
    headers_sent: ClassVar[dict[str, str]] = {}

    def do_GET(self) -> None:
        kind = type(self)
        kind.requests.append(dict(self.headers))
        if self.path == "/gone":
            self.send_error(404)
            return
        unchanged = "ETag" in kind.headers_sent and self.headers.get("If-None-Match") == kind.headers_sent["ETag"]
        self.send_response(304 if unchanged else 200)
        for name, value in kind.headers_sent.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0" if unchanged else str(len(kind.body)))
        self.end_headers()
        if not unchanged:
            self.wfile.write(kind.body)

    def log_message(self, *args: Any) -> None: ...


@pytest.fixture
def site() -> Iterator[tuple[str, type[Site]]]:
    kind = type("OwnSite", (Site,), {"requests": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), kind)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", kind
    server.shutdown()
    thread.join()
    server.server_close()


def fetched(url: str, folder: Path | None, **options: Any) -> str:
    return FileReader(Path(), FileSettings(cache=folder)).read(AttachedFile(url=url, kind="text", options=options)).text


def test_a_fetched_file_is_kept_while_it_is_fresh(tmp_path: Path, site: tuple[str, type[Site]]) -> None:
    address, kind = site
    kind.headers_sent = {"Cache-Control": "max-age=60"}
    assert [fetched(address, tmp_path) for _ in range(3)] == ["one"] * 3
    assert len(kind.requests) == 1
    assert fetched(address, tmp_path, cache=False) == "one"
    assert fetched(address, None) == "one"
    assert len(kind.requests) == 3


def test_a_stale_file_is_asked_for_again_and_a_changed_one_is_seen(
    tmp_path: Path, site: tuple[str, type[Site]]
) -> None:
    address, kind = site
    kind.headers_sent = {"Cache-Control": "no-cache", "ETag": '"1"'}
    assert fetched(address, tmp_path) == "one"
    assert fetched(address, tmp_path) == "one"
    assert kind.requests[1]["If-None-Match"] == '"1"'
    kind.headers_sent, kind.body = {"ETag": '"2"'}, b"two"
    assert fetched(address, tmp_path) == "two"


def test_a_damaged_cache_is_no_harm(tmp_path: Path, site: tuple[str, type[Site]]) -> None:
    address, kind = site
    kind.headers_sent = {"Cache-Control": "max-age=60"}
    fetched(address, tmp_path)
    for file in tmp_path.iterdir():
        file.write_bytes(b"[1")
    assert fetched(address, tmp_path) == "one"


@pytest.mark.parametrize("path", ["/gone"])
def test_what_a_server_refuses_is_not_asked_for_again(tmp_path: Path, site: tuple[str, type[Site]], path: str) -> None:
    address, kind = site
    with pytest.raises(UnreadableFile, match="404"):
        fetched(address + path, tmp_path)
    assert len(kind.requests) == 1


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://x/y", "http://127.0.0.1:1/x", "http://[bad"])
def test_an_address_that_cannot_be_fetched_says_so(url: str) -> None:
    with pytest.raises(UnreadableFile, match="cannot be downloaded"):
        fetched(url, None)
