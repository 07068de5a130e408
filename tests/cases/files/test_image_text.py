"""Words in pictures, read by the real Tesseract; without the extra the file says which one is missing."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pytest

from proctor.cases.files import FileReader, FileText, UnreadableFile
from proctor.cases.suite import Attachment

pytest.importorskip("PIL")
SAID = "Invoice 4711\nTotal: 1,250.00 EUR"


@pytest.fixture
def ocr() -> None:
    pytest.importorskip("tesserocr", reason="the extra `ocr` is not installed")


@pytest.fixture
def no_ocr(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tesserocr", None)


def picture(text: str = SAID, size: int = 48, ink: Any = "black", paper: Any = "white", mode: str = "RGB") -> Any:
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new(mode, (14 * size, 4 * size), paper)
    ImageDraw.Draw(image).text((size, size // 2), text, fill=ink, font=ImageFont.load_default(size))
    return image


def saved(image: Any, form: str, **rest: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, form, **rest)
    return out.getvalue()


def reading(folder: Path, name: str, content: bytes, **options: Any) -> FileText:
    (folder / name).write_bytes(content)
    return FileReader(folder).read(Attachment(path=name, options=options))


@pytest.mark.parametrize(("name", "form"), [("a.png", "PNG"), ("a.jpg", "JPEG"), ("a.tiff", "TIFF"), ("a.bmp", "BMP")])
@pytest.mark.usefixtures("ocr")
def test_the_text_of_an_image_is_read(tmp_path: Path, name: str, form: str) -> None:
    found = reading(tmp_path, name, saved(picture(), form))
    assert found.text == SAID
    assert found.notes == ()


@pytest.mark.usefixtures("ocr")
def test_small_letters_light_letters_and_letters_on_nothing_are_read(tmp_path: Path) -> None:
    assert reading(tmp_path, "small.png", saved(picture(size=14), "PNG")).text == SAID
    assert reading(tmp_path, "night.png", saved(picture(ink="white", paper="black"), "PNG")).text == SAID
    clear = picture(ink=(0, 0, 0, 255), paper=(0, 0, 0, 0), mode="RGBA")
    assert reading(tmp_path, "clear.png", saved(clear, "PNG")).text == SAID


@pytest.mark.usefixtures("ocr")
def test_a_photograph_taken_sideways_is_turned_first(tmp_path: Path) -> None:
    from PIL import Image

    about = Image.Exif()
    about[0x0112] = 6
    sideways = picture().rotate(90, expand=True)
    assert reading(tmp_path, "photo.jpg", saved(sideways, "JPEG", exif=about)).text == SAID


@pytest.mark.usefixtures("ocr")
def test_each_page_of_a_tiff_file_is_read_and_page_one_is_page_one(tmp_path: Path) -> None:
    content = saved(picture("First page"), "TIFF", save_all=True, append_images=[picture("Second page")])
    assert reading(tmp_path, "a.tif", content).text == "[page 1]\nFirst page\n\n[page 2]\nSecond page"
    assert reading(tmp_path, "a.tif", content, pages=[2]).text == "[page 2]\nSecond page"
    with pytest.raises(UnreadableFile, match="has 2 pages, and no page 3"):
        reading(tmp_path, "a.tif", content, pages=[3])


@pytest.mark.usefixtures("ocr")
def test_a_scanned_page_is_read_and_one_without_words_says_so(tmp_path: Path) -> None:
    pytest.importorskip("pypdf")
    blank = picture(" " * 20)
    content = saved(picture("First page"), "PDF", save_all=True, append_images=[blank, picture("Third page")])
    found = reading(tmp_path, "scan.pdf", content)
    assert found.text == "[page 1]\nFirst page\n\n[page 3]\nThird page"
    assert found.notes == ("the file scan.pdf: page 2 is an image in which no text is found",)
    assert reading(tmp_path, "scan.pdf", content, pages=[3]).text == "[page 3]\nThird page"


@pytest.mark.usefixtures("ocr")
def test_a_scan_is_turned_as_its_page_is(tmp_path: Path) -> None:
    pypdf = pytest.importorskip("pypdf")
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(saved(picture().rotate(90, expand=True), "PDF")))
    writer.pages[0].rotate(90)
    out = io.BytesIO()
    writer.write(out)
    assert reading(tmp_path, "scan.pdf", out.getvalue()).text == SAID


@pytest.mark.usefixtures("ocr")
def test_an_image_without_words_says_so(tmp_path: Path) -> None:
    found = reading(tmp_path, "sky.png", saved(picture(" " * 20), "PNG"))
    assert found.text == ""
    assert found.notes == ("the file sky.png: is an image in which no text is found",)


@pytest.mark.usefixtures("ocr")
def test_a_picture_of_too_many_pixels_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    from PIL import Image

    with pytest.raises(UnreadableFile, match="9000 x 9000 pixels, which is too large"):
        reading(tmp_path, "huge.png", saved(Image.new("1", (9000, 9000)), "PNG"))


@pytest.mark.usefixtures("ocr")
def test_a_page_with_a_picture_that_is_too_large_does_not_spoil_the_others(tmp_path: Path) -> None:
    pytest.importorskip("pypdf")
    from PIL import Image

    long = Image.new("L", (20, 40_000), 255)
    found = reading(tmp_path, "a.pdf", saved(picture(), "PDF", save_all=True, append_images=[long]))
    assert found.text == f"[page 1]\n{SAID}"
    assert "page 2 has a picture of 20 x 40000 pixels" in found.notes[0]


@pytest.mark.usefixtures("ocr")
def test_a_truncated_image_is_unreadable(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match=r"a\.png is no readable image file"):
        reading(tmp_path, "a.png", saved(picture(), "PNG")[:100])


@pytest.mark.usefixtures("ocr")
def test_without_language_data_the_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESSDATA_PREFIX", str(tmp_path))
    with pytest.raises(UnreadableFile, match=f"no language data for Tesseract in {tmp_path}"):
        reading(tmp_path, "a.png", saved(picture(), "PNG"))


@pytest.mark.usefixtures("no_ocr")
def test_without_the_extra_an_image_says_which_one_to_install(tmp_path: Path) -> None:
    found = reading(tmp_path, "a.png", saved(picture(), "PNG"))
    assert found.text == ""
    assert found.notes == ("the file a.png: is an image; to have the text in it read, pip install 'proctor[ocr]'",)


@pytest.mark.usefixtures("no_ocr")
def test_without_the_extra_a_scanned_page_says_which_one_to_install(tmp_path: Path) -> None:
    pytest.importorskip("pypdf")
    found = reading(tmp_path, "scan.pdf", saved(picture(), "PDF"))
    assert found.text == ""
    assert found.notes == (
        "the file scan.pdf: page 1 is an image; to have the text in it read, pip install 'proctor[ocr]'",
    )
