"""Prompts of users that name parts of a case: `{{input}}` (classifiers), `{eval_output}` (pixie), `{query}` (HoloDeck).

The texts of a case never become part of a prompt, where an answer could pass for an instruction. They are given to the
judge as material, and each place in the prompt is replaced by words that point to the material of that name.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable


def names_in(template: str, known: Iterable[str] | None = None) -> list[str]:
    """The names that a template has places for, each once, in order.

    With `known`, these names in single or double braces, and all other braces are part of the prompt. Without, any name
    in double braces.
    """
    return list(dict.fromkeys(match[1] for match in _places(known).finditer(template)))


def point_to_material(template: str, pointer: Callable[[str], str], known: Iterable[str] | None = None) -> str:
    """The template with each place replaced by `pointer(name)`."""
    return _places(known).sub(lambda match: pointer(match[1]), template)


def _places(known: Iterable[str] | None) -> re.Pattern[str]:
    return _pattern(None if known is None else tuple(known))


@functools.cache
def _pattern(known: tuple[str, ...] | None) -> re.Pattern[str]:
    # The bounds keep a search in a long prompt with many braces from taking long.
    if known is None:
        return re.compile(r"\{\{\{?\s{0,20}&?\s{0,20}([A-Za-z_][\w-]{0,100})\s{0,20}\}?\}\}")
    return re.compile(r"\{{1,2}\s{0,8}(" + "|".join(known) + r")\s{0,8}\}{1,2}")
