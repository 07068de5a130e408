"""Questions that are answered by choosing one of a few, with a reason."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, create_model

from proctor.judging.model import Question, Texts
from proctor.judging.questions import Graded, bare_word


class Choice(Graded):
    """What was chosen, and why."""

    reason: str = Field(description="what speaks for and against each choice, in a few sentences")
    choice: str
    worth: ClassVar[Mapping[str, float]] = {}


def choose(
    kind: str,
    instructions: str,
    choices: Mapping[str, str],
    material: Mapping[str, Texts],
    version: int = 1,
    *,
    worth: Mapping[str, float] | None = None,
) -> Question[Choice]:
    """A question whose `choices` each have a meaning, which may be empty where the instructions say it.

    Nobody who is asked sees what each is `worth`; it makes a degree of the odds, where a model shows them.
    """
    listed = "\n".join(f"- {name}: {meaning}" if meaning else f"- {name}" for name, meaning in choices.items())
    return Question(
        kind=kind,
        version=version,
        instructions=f"{instructions.strip()}\n\nChoose exactly one:\n{listed}",
        material=material,
        reply=_reply_of(tuple(choices), tuple((worth or {}).items())),
    )


@functools.cache
def _reply_of(names: tuple[str, ...], worth: tuple[tuple[str, float], ...]) -> type[Choice]:
    """The shape of a reply that can only name these; small models write them in any case and with stops."""
    by_plain_name = {bare_word(name): name for name in reversed(names)}

    def recognised(value: Any) -> Any:
        return value if value in names or not isinstance(value, str) else by_plain_name.get(bare_word(value), value)

    field: Any = (Annotated[Literal[names], BeforeValidator(recognised)], Field(description="the one choice made"))
    made = create_model("Choice", __base__=Choice, choice=field)
    made.worth = dict(worth)
    return made
