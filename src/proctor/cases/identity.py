"""How a case is recognised as the same: by its address in a run, and by keys of what it says.

- `case_key` changes with anything in the case. A resumed run keeps a trial only if the case's key is unchanged.
- `content_key` changes if the agent is asked something else or something else is expected of it. Baselines and
  comparisons follow a case by it, whatever it is called and however it is scored.
- `question_key` changes only if the agent is asked something else. Answers are reused by it.
"""

from __future__ import annotations

import hashlib
from typing import TypeAlias

from proctor.base.json_data import Json, fingerprint, to_json
from proctor.cases.encoding import CODEC, encode_case
from proctor.cases.files.digests import digests_of
from proctor.cases.files.kinds import declared_kind
from proctor.cases.suite import Case, Turn

CaseAddress: TypeAlias = tuple[str, str]
"""The suite and the id of a case: unique in a run."""

TrialAddress: TypeAlias = tuple[str, str, int]
"""The suite, the id of the case, and which repetition: unique in a run."""

IDENTITY_FIELDS = ("inputs", "metadata", "state", "final_state", "extra", "doubles", "scenario")
"""What beside the turns makes a case the same case: not its name, its tags, nor how often and by what it is scored."""

_NOT_CONTENT = frozenset({"evaluators", "attachments"})
"""Of a turn: evaluators have a key of their own, and the question's key knows files by their content."""


def case_key(content: str) -> str:
    """The key of an encoded case."""
    return hashlib.blake2b(content.encode(), digest_size=12).hexdigest()


def case_key_before_simulation(case: Case) -> str:
    """The key of a case before a simulated user made a conversation of it."""
    return case_key(encode_case(case.before_simulation))


def content_key(case: Case) -> str:
    """The key of what is asked and expected."""
    data = CODEC.encode(case.before_simulation)
    turns = [{name: value for name, value in turn.items() if name not in _NOT_CONTENT} for turn in data["turns"]]
    rest = {name: to_json(data[name]) for name in IDENTITY_FIELDS if name in data}
    return fingerprint(question_key(case), to_json(turns), rest)


def question_key(case: Case) -> str:
    """The key of what is asked."""
    turns = [[turn.input, _file_keys(turn)] for turn in case.before_simulation.turns]
    asked: list[Json] = [turns, [[item.name, item.value] for item in case.inputs], dict(case.state)]
    data = CODEC.encode(case, without=("turns",))
    asked += [data[name] for name in ("doubles", "scenario") if name in data]
    return fingerprint(*asked)


def _file_keys(turn: Turn) -> list[Json]:
    """Files by their content, not their place; by their address where the content is not known."""
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
