"""Content addresses: what a case says, and what of it the agent is asked."""

from __future__ import annotations

import hashlib

from proctor.cases.formats.native_doubles import write_doubles
from proctor.cases.formats.native_scenario import write_scenario
from proctor.cases.formats.native_writer import write_case
from proctor.cases.model import Case, Turn
from proctor.plain import Json, fingerprint, plain
from proctor.results.encoding import dumps


def case_content(case: Case) -> str:
    """The whole case as text, in the order its author gave it."""
    return dumps(write_case(case))


def case_key(content: str) -> str:
    """The address of a case's content: changes whenever anything in the case changes."""
    return hashlib.blake2b(content.encode(), digest_size=12).hexdigest()


def question_key(case: Case) -> str:
    """Changes only when the agent would be asked something else: expectations and evaluators do not count."""
    planned = case.as_planned
    turns = [[turn.input, _files(turn)] for turn in planned.turns]
    asked: list[Json] = [turns, [[item.name, item.value] for item in case.inputs], dict(case.state)]
    if case.doubles:
        asked.append(write_doubles(case))
    if case.scenario is not None:
        asked.append(write_scenario(case.scenario))
    return fingerprint(*asked)


def _files(turn: Turn) -> list[Json]:
    """What is told of the files: what they say, not where they are; where that is not known, their address."""
    if not turn.attachments:
        return []
    from proctor.cases.contents import contents_of
    from proctor.cases.file_kinds import kind_said

    return [
        [
            item.path if content is None else f"content:{content}",
            item.url,
            kind_said(item),
            item.description,
            plain(item.options),
        ]
        for item, content in zip(turn.attachments, contents_of(turn), strict=True)
    ]
