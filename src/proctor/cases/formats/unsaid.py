"""What every writer of a foreign format needs: text that any file can hold, and a sentence for all it leaves unsaid."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import fields
from typing import Any

from proctor.plain import Json, plain


def unsaid(thing: Any, said: Collection[str], owner: str) -> list[str]:
    """One sentence for each field of a dataclass that holds something and is not among those the format says."""
    return [
        f"{owner}: {field.name} cannot be expressed"
        for field in fields(thing)
        if field.name not in said and getattr(thing, field.name) != field.default
    ]


def json_text(data: Json) -> str:
    """Indented JSON, readable where UTF-8 can hold it and escaped where it cannot."""
    text = json.dumps(plain(data), indent=2, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        text = json.dumps(plain(data), indent=2)
    return f"{text}\n"
