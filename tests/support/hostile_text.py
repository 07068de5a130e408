"""Hostile text in every field of a template: nothing of it becomes markup, or reaches a terminal or a CI log."""

from __future__ import annotations

import dataclasses
import enum
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from typing import Any

from proctor.reporting.html import environment

HOSTILE = (
    "x hostile=1 \"'><hostile-tag hostile='1'></pre></td><script>alert(1)</script><img src=x onerror=alert(2)>"
    "{{ 7 * 7 }} \x1b[2J \u202e \ud800 \x00\n::error file=a::owned ##vso[x]y"
)


class Elements(HTMLParser):
    """The elements and attributes that a browser finds."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}


def hostile(value: Any) -> Any:
    """The same with every text replaced; outcomes and other words of a fixed list stay."""
    if isinstance(value, str):
        return value if isinstance(value, enum.Enum) else HOSTILE
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: hostile(getattr(value, field.name)) for field in dataclasses.fields(value) if field.init}
        return dataclasses.replace(value, **fields)
    if isinstance(value, Mapping):
        items = {hostile(key): hostile(item) for key, item in value.items()}
        return Counter(items) if isinstance(value, Counter) else items
    if isinstance(value, (list, tuple)):
        return type(value)(hostile(item) for item in value)
    return value


def as_lists(value: Any) -> Any:
    """The same with everything that can be iterated once as a list."""
    if isinstance(value, Iterator):
        return [as_lists(item) for item in value]
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(as_lists(item) for item in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type) and hasattr(value, "rows"):
        return dataclasses.replace(value, rows=as_lists(value.rows))
    return value


def check_hostile_text(template: str, values: Mapping[str, Any]) -> None:
    """Render a template with these values, and again with every text in them hostile."""
    usual = Elements(environment.render(template, **values))
    text = environment.render(template, **{name: hostile(value) for name, value in values.items()})
    found = Elements(text)
    where = f"in {template}"
    assert "hostile" in text, where
    assert "hostile-tag" not in found.tags, where
    assert "img" not in found.tags, where
    assert found.tags.count("script") == usual.tags.count("script"), where
    assert not {name for name in found.attributes if name in ("hostile", "onerror")}, where
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e]", text), where
    assert "\n::error file=a::" not in text, where
    assert "##vso[" not in text, where
    assert "{{ 7 * 7 }}" in text, where
