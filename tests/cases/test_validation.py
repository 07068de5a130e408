"""What pydantic finds wrong, as problems with file, line and hint."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Annotated, Any, Literal, Self

import pytest
from pydantic import BaseModel, ConfigDict, Field, model_validator

from proctor.base.documents import Document
from proctor.cases.validation import problem_at, validate


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Mail(Strict):
    kind: Literal["mail"]
    mail: str
    copies: int = Field(1, ge=1)


class Call(Strict):
    kind: Literal["call"]
    number: str


class Desk(Strict):
    name: str
    open: bool = True
    contacts: list[Annotated[Mail | Call, Field(discriminator="kind")]] = Field(default_factory=list)
    rooms: dict[str, Call] = Field(default_factory=dict)
    share: float = Field(0.5, ge=0, le=1)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.name == "closed" and self.open:
            raise problem_at(("open",), "cannot be true for a closed desk")
        return self


def problems(text: str) -> list[str]:
    document = Document(Path("desk.yaml"), dedent(text).lstrip())
    read = validate(Desk, document.data, document)
    assert (read is None) is bool(document.problems)
    return [str(problem) for problem in document.problems]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("open: true", "desk.yaml:1: needs 'name'"),
        ("name: 3", "desk.yaml:1: name must be text, not a number"),
        ("nam: a\nname: b", "desk.yaml:1: nam is not a known key; did you mean 'name'?"),
        ("name: a\nopen: 1", "desk.yaml:2: open must be true or false, not a number"),
        ("name: a\nshare: 2", "desk.yaml:2: share must be at most 1, not 2"),
        ("name: a\ncontacts: 3", "desk.yaml:2: contacts must be a list, not a number"),
        (
            "name: a\ncontacts:\n- {kind: mail, mail: x, copies: 0}",
            "desk.yaml:3: contacts[0].copies must be at least 1, not 0",
        ),
        ("name: a\ncontacts:\n- {kind: mail, mail: 3}", "desk.yaml:3: contacts[0].mail must be text, not a number"),
        (
            "name: a\ncontacts:\n- {kind: call, numbr: x, number: y}",
            "desk.yaml:3: contacts[0].numbr is not a known key; did you mean 'number'?",
        ),
        ("name: a\nrooms:\n  red: {kind: call, number: 3}", "desk.yaml:3: rooms.red.number must be text, not a number"),
        ("name: a\nrooms:\n  red: 3", "desk.yaml:3: rooms.red must be an object, not a number"),
        ("name: closed\nopen: true", "desk.yaml:2: open cannot be true for a closed desk"),
        ("- 1", "desk.yaml:1: must be an object, not a list"),
    ],
)  # fmt: skip
def test_a_mistake_is_a_problem_with_its_line_and_a_hint(text: str, complaint: str) -> None:
    assert problems(text) == [complaint]


def test_every_mistake_is_found_at_once() -> None:
    found = problems("open: 3\nshare: x\ncontacts: [{kind: call}, 3]\n")
    assert len(found) == 5, found


def test_data_without_mistakes_is_the_object_that_it_describes() -> None:
    data: Any = {"name": "a", "contacts": [{"kind": "mail", "mail": "x"}]}
    document = Document(Path("desk.yaml"), "", data, lambda pointer: None)
    desk = validate(Desk, data, document)
    assert desk is not None
    assert desk.contacts == [Mail(kind="mail", mail="x")]
