"""How a case is recognized as the same: by its address in a run, and by keys computed from its content.

- `case_key` changes with anything in the case. A resumed run reuses a trial only if this key is unchanged.
- `content_key` changes with the input and the expectations. Baselines and comparisons find a case by it, even if its id
  or its evaluators change.
- `question_key` changes only with what is sent to the agent. Stored answers are found by it.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from typing import TypeAlias

from proctor.base.json_data import Json, fingerprint, to_json
from proctor.base.masking import IdMasker, mask
from proctor.cases.encoding import CODEC, encode_case
from proctor.cases.files.digests import digests_of
from proctor.cases.files.kinds import declared_kind
from proctor.cases.suite import Case, Suite, Turn

CaseAddress: TypeAlias = tuple[str, str]
"""The suite and the id of a case: unique in a run."""

TrialAddress: TypeAlias = tuple[str, str, int]
"""The suite, the id of the case, and which repetition: unique in a run."""

_NAMESAKE = re.compile(r"(?: \([^()]+\.\w+\))?(?: #[0-9]+)?\Z")


def own_name(suite: str) -> str:
    """The name of a suite as its file has it, without what sets it apart from others of that name in one run."""
    return _NAMESAKE.sub("", suite)


def with_masked_ids(suite: Suite) -> Suite:
    """The suite with secrets masked in its name and in the ids of its cases; the same object if there are none.

    An id is in addresses, commands, file names and every report, so it is masked as soon as a suite is read or planned.
    """
    ids = IdMasker()
    if not ids.has_secrets([suite.name, *(case.id for case in suite.cases)]):
        return suite
    cases = tuple(case if ids.mask(case.id) == case.id else replace(case, id=ids.mask(case.id)) for case in suite.cases)
    return replace(suite, name=mask(suite.name), cases=cases)


IDENTITY_FIELDS = ("inputs", "metadata", "state", "final_state", "extra", "doubles", "scenario")
"""Stored names of the fields that identify a case besides its turns: not its id, tags, repeats or evaluators."""

_NOT_CONTENT = frozenset({"evaluators", "attachments"})
"""Stored names of fields of a turn that are not in its content: the question key has the files, by their contents."""


def case_key(content: str) -> str:
    """The key of an encoded case."""
    return hashlib.blake2b(content.encode(), digest_size=12).hexdigest()


def case_key_before_simulation(case: Case) -> str:
    """The key of a case without the conversation that a simulated user had."""
    return case_key(encode_case(case.before_simulation))


def content_key(case: Case) -> str:
    """The key of the input and the expectations."""
    data = CODEC.encode(case.before_simulation)
    turns = [{name: value for name, value in turn.items() if name not in _NOT_CONTENT} for turn in data["turns"]]
    rest = {name: to_json(data[name]) for name in IDENTITY_FIELDS if name in data}
    return fingerprint(question_key(case), to_json(turns), rest)


def question_key(case: Case) -> str:
    """The key of what is sent to the agent."""
    turns = [[turn.input, _file_keys(turn)] for turn in case.before_simulation.turns]
    question: list[Json] = [turns, [[item.name, item.value] for item in case.inputs], dict(case.state)]
    data = CODEC.encode(case, without=("turns",))
    question += [data[name] for name in ("doubles", "scenario") if name in data]  # stored names
    return fingerprint(*question)


def _file_keys(turn: Turn) -> list[Json]:
    """Files by their contents, not their paths; by path or URL if the contents are not known."""
    if not turn.files:
        return []
    return [
        [
            item.path if content is None else f"content:{content}",
            item.url,
            declared_kind(item),
            item.description,
            to_json(item.options),
        ]
        for item, content in zip(turn.files, digests_of(turn), strict=True)
    ]
