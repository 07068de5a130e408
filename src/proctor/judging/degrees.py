"""Puts what was measured of a verdict into the reply, where evaluators find it instead of all or nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from proctor.judging.model import ReplyT
from proctor.judging.verdict_odds import Path, pointer

if TYPE_CHECKING:
    from proctor.judging.questions import Graded


def with_degrees(reply: ReplyT, odds: Any) -> ReplyT:
    """`reply` with the degree of each verdict whose odds are known, and no other: what a model writes is no measure."""
    _grade(reply, odds if isinstance(odds, Mapping) else {}, ())
    return reply


def _grade(value: Any, odds: Mapping[str, Any], path: Path) -> None:
    from pydantic import BaseModel

    from proctor.judging.questions import Graded

    if isinstance(value, list):
        for number, item in enumerate(value):
            _grade(item, odds, (*path, number))
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            _grade(getattr(value, name), odds, (*path, name))
        if isinstance(value, Graded):
            value.degree = _degree(value, odds, path)


def _degree(item: Graded, odds: Mapping[str, Any], path: Path) -> float | None:
    """What the verdict is worth on average; it is the last choice in the item, since reasons come before it."""
    worth = item.worth
    known = [chances for name in type(item).model_fields if (chances := odds.get(pointer((*path, name))))]
    if not known or not worth:
        return None
    degree = math.fsum(chance * worth.get(choice, 0.0) for choice, chance in known[-1].items())
    return min(1.0, max(0.0, degree))
