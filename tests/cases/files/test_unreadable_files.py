"""Files that are not what they are said to be, or are made to do harm: each is refused with a reason."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.cases.files.documents import read_document
from proctor.cases.files.file_reader import FileReader
from proctor.cases.files.file_text import FileText, ReadLimits, UnreadableFile
from proctor.cases.files.kinds import NOT_TEXT, detected_kind
from proctor.cases.suite import AttachedFile, FileSettings

pytest.importorskip("pypdf")
pytest.importorskip("docx")
pytest.importorskip("pptx")
pytest.importorskip("openpyxl")
STARTS = (b"", b"%PDF-1.7\n", b"PK\x03\x04", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0", b"II*\0", b"BM", b"<html>")


def reading(folder: Path, name: str, content: bytes, kind: str | None = None, **options: Any) -> FileText:
    (folder / name).write_bytes(content)
    return FileReader(folder).read(AttachedFile(path=name, kind=kind, options=options))


def complaint(folder: Path, name: str, content: bytes, kind: str | None = None, **options: Any) -> str:
    with pytest.raises(UnreadableFile) as caught:
        reading(folder, name, content, kind, **options)
    assert caught.value.__cause__ is None
    return str(caught.value)


def workbook(*rows: list[Any]) -> Any:
    from openpyxl import Workbook

    book = Workbook()
    for row in rows:
        book.active.append(row)
    return book


def saved(document: Any) -> bytes:
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def word() -> bytes:
    from docx import Document

    document = Document()
    document.add_paragraph("Signed.")
    return saved(document)


def pdf_with(change: Any) -> bytes:
    from pypdf import PdfWriter

    writer = PdfWriter()
    change(writer)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def slides() -> bytes:
    from pptx import Presentation

    return saved(Presentation())


@pytest.mark.parametrize("kind", sorted(NOT_TEXT))
@given(start=st.sampled_from(STARTS), rest=st.binary(max_size=300))
def test_no_content_breaks_a_reader(kind: str, start: bytes, rest: bytes) -> None:
    content = start + rest
    try:
        read_document(kind, detected_kind(content), content, ReadLimits())
    except UnreadableFile as error:
        assert str(error)


@pytest.mark.parametrize("name", ["a.pdf", "a.docx", "a.xlsx", "a.pptx", "a.png"])
def test_an_empty_file_of_any_kind_is_refused(tmp_path: Path, name: str) -> None:
    assert name in complaint(tmp_path, name, b"")


@pytest.mark.parametrize(
    ("name", "content"), [("a.docx", word()), ("a.xlsx", saved(workbook(["x"]))), ("a.pptx", slides())]
)
def test_a_file_that_breaks_off_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    assert "is a damaged zip file" in complaint(tmp_path, name, content[: len(content) // 2])


@pytest.mark.parametrize(
    ("name", "kind", "content", "told"),
    [
        ("a.xlsx", None, word(), "a.xlsx is read as excel, but is a Word file"),
        ("a.docx", None, saved(workbook()), "a.docx is read as word, but is an Excel file"),
        ("a.pdf", None, word(), "a.pdf is read as pdf, but is a Word file"),
        ("a.png", None, b"%PDF-1.4", "a.png is read as image, but is a PDF file"),
        ("a.txt", None, b"%PDF-1.4", "a.txt is read as text, but is a PDF file; set its type"),
        ("a.md", "text", b"\x89PNG\r\n\x1a\n", "a.md is read as text, but is an image; set its type"),
        ("a.csv", "csv", word(), "a.csv is read as text, but is a Word file; set its type"),
        ("a.png", None, b"not at all", "a.png cannot be read as an image: PNG, JPEG, TIFF, GIF, WebP or BMP"),
    ],
)
def test_a_file_of_another_kind_says_which(
    tmp_path: Path, name: str, kind: str | None, content: bytes, told: str
) -> None:
    assert complaint(tmp_path, name, content, kind) == told


def test_the_type_counts_more_than_the_ending(tmp_path: Path) -> None:
    assert reading(tmp_path, "deed.bin", word(), "word").text == "Signed."
    assert reading(tmp_path, "deed.bin", word(), "docx").text == "Signed."
    assert reading(tmp_path, "note.pdf", b"only words", "text").text == "only words"


def test_a_file_that_begins_like_a_bitmap_may_be_text(tmp_path: Path) -> None:
    assert reading(tmp_path, "cars.txt", b"BMW and others").text == "BMW and others"


def test_a_pdf_that_only_changes_are_locked_in_is_read_and_one_with_a_password_is_not(tmp_path: Path) -> None:
    def locked(word: str) -> bytes:
        def lock(writer: Any) -> None:
            writer.add_blank_page(100, 100)
            writer.encrypt(word, "owner", algorithm="RC4-128")

        return pdf_with(lock)

    assert reading(tmp_path, "a.pdf", locked("")).notes == ("the file a.pdf: page 1 has no text",)
    assert complaint(tmp_path, "a.pdf", locked("secret")) == "a.pdf is protected with a password"


def test_a_pdf_without_pages_says_so(tmp_path: Path) -> None:
    content = pdf_with(lambda writer: None)
    assert reading(tmp_path, "a.pdf", content).notes == ("the file a.pdf: has no pages",)
    assert complaint(tmp_path, "a.pdf", content, pages=[1]) == "a.pdf has 0 pages, so there is no page 1"


@pytest.mark.parametrize(
    ("pages", "told"),
    [
        ([0], "has 1 page, so there is no page 0"),
        ([-1], "has 1 page, so there is no page -1"),
        ([2], "has 1 page, so there is no page 2"),
        (["one"], "has no page 'one'; pages are numbered from 1"),
        ([True], "has no page True; pages are numbered from 1"),
        ({}, "has no page {}; pages are numbered from 1"),
    ],
)
def test_a_page_that_is_not_there_is_named(tmp_path: Path, pages: Any, told: str) -> None:
    content = pdf_with(lambda writer: writer.add_blank_page(100, 100))
    assert complaint(tmp_path, "a.pdf", content, pages=pages) == f"a.pdf {told}"


def test_an_office_file_with_a_password_or_of_another_age_says_so(tmp_path: Path) -> None:
    content = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)
    assert "is an old or password-protected office file" in complaint(tmp_path, "a.xlsx", content)
    assert "is an old or password-protected office file" in complaint(tmp_path, "a.doc", content, "word")


@pytest.mark.parametrize(("name", "part"), [("a.docx", "word/"), ("a.xlsx", "xl/"), ("a.pptx", "ppt/")])
def test_a_small_file_that_unpacks_to_a_flood_is_not_unpacked(tmp_path: Path, name: str, part: str) -> None:
    out = io.BytesIO()
    with (
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open(f"{part}document.xml", "w") as file,
    ):
        for _ in range(101):
            file.write(bytes(2**20))
    assert len(out.getvalue()) < 2**21
    assert complaint(tmp_path, name, out.getvalue()) == f"{name} unpacks to more than 100 MB"


def test_entities_that_grow_are_not_expanded(tmp_path: Path) -> None:
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    bomb = f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY l0 "ha">{laughs}]>'
    source, out = zipfile.ZipFile(io.BytesIO(word())), io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for item in source.infolist():
            content = source.read(item)
            if item.filename == "word/document.xml":
                text = content.decode().partition("?>")[2]
                content = (bomb + text.replace("Signed.", "&l9;")).encode()
            archive.writestr(item.filename, content)
    try:
        assert len(reading(tmp_path, "a.docx", out.getvalue()).text) < 10_000
    except UnreadableFile as error:
        assert "a.docx" in str(error)


def test_a_sheet_with_one_cell_far_away_is_read_at_once(tmp_path: Path) -> None:
    book = workbook(["near"])
    book.active.cell(1048576, 16384, "far")
    text = reading(tmp_path, "a.xlsx", saved(book)).text
    assert [line.strip(",") for line in text.splitlines()] == ["near", "far"]
    assert reading(tmp_path, "a.xlsx", saved(book), range="A1:XFD1048575").text == "near\n"


def sheet_of(rows: int, after: str = "") -> bytes:
    """A workbook with one sheet of `rows` rows, followed by `after` in its XML."""
    source, out = zipfile.ZipFile(io.BytesIO(saved(workbook(["x"])))), io.BytesIO()
    cells = "".join(f'<row r="{number}"><c r="A{number}"><v>{number}</v></c></row>' for number in range(1, rows + 1))
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for item in source.infolist():
            content = source.read(item).decode()
            if item.filename == "xl/worksheets/sheet1.xml":
                content = f"{content.partition('<sheetData>')[0]}<sheetData>{cells}{after}</sheetData></worksheet>"
            archive.writestr(item.filename, content)
    return out.getvalue()


def test_a_long_sheet_is_read_no_further_than_its_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its end is damaged, so reading would fail there; it ends before, at the limit of time or of text."""
    content = sheet_of(20_000, after="</damaged>")
    assert "cannot be read as a file of type excel" in complaint(tmp_path, "a.xlsx", content)
    with pytest.raises(UnreadableFile, match="takes too long to read: sheet Sheet was not read completely in time"):
        read_document("excel", "excel", content, ReadLimits(until=0.0))
    late_range = ReadLimits({"range": "A19990:B20000"}, until=0.0)
    with pytest.raises(UnreadableFile, match="takes too long to read"):
        read_document("excel", "excel", content, late_range)
    assert reading(tmp_path, "a.xlsx", content, range="A1:A2").text == "1\n2\n"
    monkeypatch.setattr("proctor.cases.files.documents.MAX_BYTES", 2**10)
    assert "MB of text on sheet Sheet; set a range" in complaint(tmp_path, "a.xlsx", content)


def test_a_huge_sheet_is_refused_before_it_is_read_unless_a_range_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proctor.cases.files.documents.MAX_CELLS", 999)
    content = sheet_of(1000, after="</damaged>")
    assert "has a sheet with 1,000 cells, more than 999; set a range" in complaint(tmp_path, "a.xlsx", content)
    assert reading(tmp_path, "a.xlsx", content, range="A1:A2").text == "1\n2\n"


def test_one_wide_row_does_not_widen_a_long_sheet_beyond_the_limit(tmp_path: Path) -> None:
    wide = '<row r="2001"><c r="XFD2001"><v>1</v></c></row>'
    assert "MB of text on sheet Sheet; set a range" in complaint(tmp_path, "a.xlsx", sheet_of(2000, after=wide))


@pytest.mark.parametrize(
    ("area", "text"),
    [
        ("B1:A2", "1,2\n3,4\n"),
        ("B2", "4\n"),
        ("B:B", "2\n4\n6\n"),
        ("3:3", "5,6\n"),
        ("$A$3:$B$3", "5,6\n"),
        ("D9:E10", ""),
    ],
)
def test_ranges_are_read_as_spreadsheets_write_them(tmp_path: Path, area: str, text: str) -> None:
    content = saved(workbook([1, 2], [3, 4], [5, 6]))
    assert reading(tmp_path, "a.xlsx", content, range=area).text == text


@pytest.mark.parametrize("area", ["", "A", "1A", "A1:B", "A1:ZZZZ9", "A1;B2", "Sheet!A1:B2", "ä1", "A0:B0", "\ud800"])
def test_a_range_that_is_none_is_refused(tmp_path: Path, area: str) -> None:
    told = complaint(tmp_path, "a.xlsx", saved(workbook([1, 2])), range=area)
    assert told == f"a.xlsx has no range {area!r}; write it like A1:E100"


def test_a_chart_is_no_sheet(tmp_path: Path) -> None:
    from openpyxl.chart import BarChart

    book = workbook(["cell"])
    book.create_chartsheet("Chart", 0).add_chart(BarChart())
    book.active = 0
    assert complaint(tmp_path, "a.xlsx", saved(book), sheet="Chart") == "a.xlsx has no sheet 'Chart'; it has Sheet"
    assert reading(tmp_path, "a.xlsx", saved(book), range="A1").text == "cell\n"


def test_reading_stops_when_its_time_is_up(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf_with(lambda writer: writer.add_blank_page(100, 100)))
    reader = FileReader(tmp_path, FileSettings(read_seconds=-1.0))
    with pytest.raises(UnreadableFile, match=r"a\.pdf takes too long to read: 0 of 1 pages were read in time"):
        reader.read(AttachedFile(path="a.pdf"))


def test_what_has_no_end_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    for path, told in (("pipe.txt", "not a regular file"), ("/dev/zero", "not a regular file"), (".", "a folder")):
        with pytest.raises(UnreadableFile, match=f"cannot be read: it is {told}"):
            FileReader(tmp_path).read(AttachedFile(path=path))


@pytest.mark.parametrize("path", ["a\0b", "x" * 5000, "\ud800.txt", ""])
def test_a_name_that_no_file_can_have_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(UnreadableFile, match="cannot be read"):
        FileReader(tmp_path).read(AttachedFile(path=path))


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("grün".encode("utf-16-le"), None),
        (b"\xff\xfea", None),
        ("x".encode("utf-32"), None),
        (b"\x1f\x8b\x08\xff\xff\x01\x02", None),
        (b"\x93quoted\x94", "“quoted”"),
        (b"page\x0c\xe9nd", "page\x0cénd"),
    ],
)
def test_bytes_that_are_not_utf_8_are_text_or_refused(tmp_path: Path, content: bytes, text: str | None) -> None:
    if text is None:
        assert complaint(tmp_path, "a.txt", content) == "a.txt is not text; set its type"
    else:
        assert reading(tmp_path, "a.txt", content).text == text


def test_a_page_is_read_in_the_encoding_it_names(tmp_path: Path) -> None:
    page = '<html><meta charset="shift_jis"><p>日本</p><script>alert("no")</script>'
    assert reading(tmp_path, "a.html", page.encode("shift_jis")).text == "日本"
    assert reading(tmp_path, "b.html", b"<meta charset='hex'><p>caf\xe9").text == "café"


def test_a_page_is_known_by_its_beginning_too(tmp_path: Path) -> None:
    page = b"\xef\xbb\xbf \n<!DOCTYPE html><p>words<style>p {}</style>"
    assert reading(tmp_path, "page", page).text == "words"
    assert reading(tmp_path, "page.txt", page, "text").text == "words"
