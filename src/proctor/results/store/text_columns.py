"""Text in columns of the database: SQLite refuses lone surrogates, so text that has some is stored as JSON."""

from __future__ import annotations

import json

ESCAPED = "\x00json:"
"""Marks text that is stored as JSON."""


def encode_text(text: str) -> str:
    """The text as it is stored; nearly always the text itself."""
    if text.isascii() and not text.startswith(ESCAPED):
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return ESCAPED + json.dumps(text)
    return ESCAPED + json.dumps(text) if text.startswith(ESCAPED) else text


def decode_text(text: str) -> str:
    """The original of a text that `encode_text` returned."""
    if not text.startswith(ESCAPED):
        return text
    decoded: str = json.loads(text[len(ESCAPED) :])
    return decoded
