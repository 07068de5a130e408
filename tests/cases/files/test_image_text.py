"""The text in images is not read; a file that is one says so."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from proctor.cases.files.file_reader import FileReader
from proctor.cases.files.file_text import FileText
from proctor.cases.suite import AttachedFile

DOT = base64.b64decode(
    b"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
NOT_READ = "is an image; text in images is not read"


def reading(folder: Path, name: str, content: bytes) -> FileText:
    (folder / name).write_bytes(content)
    return FileReader(folder).read(AttachedFile(path=name))


def test_an_image_yields_no_text_and_says_so(tmp_path: Path) -> None:
    found = reading(tmp_path, "a.png", DOT)
    assert (found.text, found.notes) == ("", (f"the file a.png: {NOT_READ}",))


def test_a_scanned_page_yields_no_text_and_says_so(tmp_path: Path) -> None:
    pytest.importorskip("pypdf")
    about = b"/Type/XObject/Subtype/Image/Width 1/Height 1/ColorSpace/DeviceGray/BitsPerComponent 8/Length 1"
    picture = b"<<%s>>stream\n\0\nendstream" % about
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Resources<</XObject<</I 4 0 R>>>>>>",
        picture,
    ]
    body, offsets = b"%PDF-1.4\n", []
    for number, item in enumerate(objects, 1):
        offsets.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, item)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    body += b"xref\n0 5\n0000000000 65535 f \n%strailer<</Size 5/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (
        table,
        len(body),
    )
    found = reading(tmp_path, "scan.pdf", body)
    assert (found.text, found.notes) == ("", (f"the file scan.pdf: page 1 {NOT_READ}",))
