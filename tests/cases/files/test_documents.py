"""Office files, made by the libraries that read them; without these there is nothing to test."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from proctor.cases.files.file_reader import FileReader
from proctor.cases.files.file_text import FileText, UnreadableFile
from proctor.cases.suite import AttachedFile


def reading(folder: Path, name: str, content: bytes, **options: Any) -> FileText:
    (folder / name).write_bytes(content)
    return FileReader(folder).read(AttachedFile(path=name, options=options))


def pdf(*pages: str) -> bytes:
    """A document with one line on each page, written out by hand."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", ""]
    font = "<< /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >>"
    kids = []
    for text in pages:
        number = len(objects) + 1
        kids.append(f"{number} 0 R")
        stream = f"BT /F1 24 Tf 72 700 Td ({text}) Tj ET" if text else ""
        objects.append(f"<< /Type /Page /Parent 2 0 R /Resources {font} /Contents {number + 1} 0 R >>")
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(pages)} /MediaBox [0 0 612 792] >>"
    out, places = io.BytesIO(b"%PDF-1.4\n"), []
    out.seek(0, io.SEEK_END)
    for number, body in enumerate(objects, 1):
        places.append(out.tell())
        out.write(f"{number} 0 obj\n{body}\nendobj\n".encode())
    start = out.tell()
    rows = "".join(f"{place:010d} 00000 n \n" for place in places)
    size = len(objects) + 1
    out.write(f"xref\n0 {size}\n0000000000 65535 f \n{rows}trailer << /Size {size} /Root 1 0 R >>\n".encode())
    out.write(f"startxref\n{start}\n%%EOF".encode())
    return out.getvalue()


def test_page_one_of_a_pdf_is_page_one(tmp_path: Path) -> None:
    pytest.importorskip("pypdf")
    content = pdf("Alpha", "Beta", "Gamma")
    assert reading(tmp_path, "a.pdf", content, pages=[1]).text == "[page 1]\nAlpha"
    assert reading(tmp_path, "a.pdf", content, pages=[3, 1]).text == "[page 3]\nGamma\n\n[page 1]\nAlpha"
    assert "Beta" in reading(tmp_path, "a.pdf", content).text
    with pytest.raises(UnreadableFile, match="has 3 pages, so there is no page 4"):
        reading(tmp_path, "a.pdf", content, pages=[4])


def test_a_page_without_text_is_told_of(tmp_path: Path) -> None:
    pytest.importorskip("pypdf")
    found = reading(tmp_path, "scan.pdf", pdf("Alpha", ""))
    assert found.notes == ("the file scan.pdf: page 2 has no text",)


def test_a_sheet_and_a_range_are_read_as_rows(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = "First"
    for row in (["name", "price"], ["tea", 3], ["ink, red", 4.5]):
        book.active.append(row)
    book.create_sheet("Second").append(["other"])
    out = io.BytesIO()
    book.save(out)
    content = out.getvalue()
    assert reading(tmp_path, "a.xlsx", content, sheet="Second").text == "other\n"
    assert reading(tmp_path, "a.xlsx", content, range="A2:B2").text == "tea,3\n"
    assert reading(tmp_path, "a.xlsx", content, sheet="First").text == 'name,price\ntea,3\n"ink, red",4.5\n'
    assert reading(tmp_path, "a.xlsx", content).text.startswith("[sheet First]\n")
    with pytest.raises(UnreadableFile, match="has no sheet 'Third'; it has First, Second"):
        reading(tmp_path, "a.xlsx", content, sheet="Third")
    with pytest.raises(UnreadableFile, match="has no range"):
        reading(tmp_path, "a.xlsx", content, range="nonsense!")


def test_a_word_document_keeps_headings_and_tables_in_order(tmp_path: Path) -> None:
    docx = pytest.importorskip("docx")
    document = docx.Document()
    document.add_heading("Terms", 1)
    table = document.add_table(1, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "rate", "4 %"
    document.add_paragraph("Signed.")
    out = io.BytesIO()
    document.save(out)
    assert reading(tmp_path, "a.docx", out.getvalue()).text == "# Terms\n\nrate | 4 %\n\nSigned."


def test_slides_are_counted_from_one(tmp_path: Path) -> None:
    pptx = pytest.importorskip("pptx")
    show = pptx.Presentation()
    for title in ("Start", "End"):
        show.slides.add_slide(show.slide_layouts[0]).shapes.title.text = title
    out = io.BytesIO()
    show.save(out)
    assert reading(tmp_path, "a.pptx", out.getvalue(), pages=[1]).text == "[slide 1]\nStart"
