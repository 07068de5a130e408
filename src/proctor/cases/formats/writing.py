"""What the writers of foreign formats share: a file for each suite, and a sentence for everything left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from proctor.base.errors import UsageError
from proctor.base.json_data import Json, plain
from proctor.base.names import UniqueIds, slug
from proctor.cases.formats.format_spec import Written
from proctor.cases.suite import Case, Suite


def one_file_each(
    suites: Sequence[Suite], text_of: Callable[[Suite, list[str]], str], *, name: str, ending: str
) -> Written:
    """One file per suite: the first is the text, the others stand beside it; `name` is for suites without letters."""
    if not suites:
        raise UsageError("there is no suite to write")
    losses: list[str] = []
    texts = [text_of(suite, losses) for suite in suites]
    names = UniqueIds()
    files = [f"{names.claim(slug(suite.name) or name)}{ending}" for suite in suites]
    return Written(texts[0], tuple(losses), tuple(zip(files[1:], texts[1:], strict=True)))


def cannot_express(where: str, things: Iterable[str]) -> list[str]:
    """One sentence for each thing that a format has no place for."""
    return [f"{where}: {thing} cannot be expressed" for thing in things]


def given_names(given: Mapping[str, object]) -> list[str]:
    """The names of what is there."""
    return [name for name, value in given.items() if value]


def unwritten_fields(thing: Any, written: Collection[str], where: str) -> list[str]:
    """One sentence for each field of a dataclass that differs from its default and is not among the written ones."""
    return cannot_express(
        where,
        (
            field.name
            for field in fields(thing)
            if field.name not in written and getattr(thing, field.name) != field.default
        ),
    )


def unwritten_case_parts(case: Case) -> list[str]:
    """What a case has that neither HoloDeck nor pixie can hold."""
    return given_names(
        {
            "tags": case.tags,
            "state": case.state,
            "final state": case.final_state is not None,
            "repeat": case.repeat is not None,
            "timeout": case.timeout is not None,
            "skip": case.skip is not None,
            "doubles of tools": case.doubles,
            "scenario": case.scenario is not None,
        }
    )


def written_extensions(where: str, extra: Mapping[str, Json], losses: list[str]) -> dict[str, Json]:
    """The `x-` keys, which every format keeps; another key is what a different format said, and is lost."""
    losses += cannot_express(where, (repr(key) for key in extra if not key.startswith("x-")))
    return {key: plain(value) for key, value in extra.items() if key.startswith("x-")}


def expressible(text: str, losses: list[str]) -> str:
    """The text as UTF-8 can hold it, where the format has no way to escape what it cannot."""
    whole = re.sub("[\\ud800-\\udfff]", "\ufffd", text)
    if whole != text:
        losses.append("halves of surrogate pairs cannot be expressed; U+FFFD stands for each")
    return whole
