"""The columns of a CSV suite, as its reader and the search for misspelled suites know them."""

from __future__ import annotations

COLUMNS = ("id", "input", "expected", "contains", "contains_all", "tools", "description", "tags")
PREFIXES = ("metadata.", "state.", "input.")
"""Columns whose name goes on after the point, such as `metadata.region`."""
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "vertical bars"}
"""Separators that spreadsheets write and a suite does not have, and how messages call them."""


def separator_of(header: str) -> str:
    """The character that separates the columns of a table, from its first line; a comma if none does."""
    return max(",;\t|", key=header.count)
