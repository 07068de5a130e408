"""What a file format is, and what writers of formats share: ids, file names, moved references, sentences for losses."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Protocol

from proctor.base.documents import Document
from proctor.base.errors import UsageError
from proctor.base.json_data import Json, plain
from proctor.cases.matchers import Matcher, Predicate, parse
from proctor.cases.suite import Attachment, Case, Double, EvaluatorSpec, ExpectedCall, Suite, Turn

JSON_AND_YAML = (".json", ".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class Written:
    """A suite in some format, and everything that format could not say."""

    text: str
    losses: tuple[str, ...] = ()
    """One sentence per thing left out: `case 'refund': tags cannot be expressed`."""
    companions: tuple[tuple[str, str], ...] = ()
    """Further files that belong beside it, as (name, text): ADK's `test_config.json`."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a format says about itself, so that no other module needs a table of formats."""

    endings: tuple[str, ...] = ()
    """Endings of the files that it is read from and written to."""
    own_keys: frozenset[str] = frozenset()
    """Keys that only this format has at its top level: a file with one of them is read by this format."""
    file_names: tuple[str, ...] = ()
    """Patterns of names that mark a file as a suite of this format, so that an unreadable one is a mistake."""
    written_to: tuple[str, ...] = ()
    """Patterns of names that ask for this format when a suite is written."""
    companions: tuple[str, ...] = ()
    """Files that stand beside its suites and are no suites."""
    parsers: Mapping[str, Callable[[Path, str], Json]] = field(default_factory=dict)
    """Parsers by ending, for files that are neither JSON nor YAML."""
    resembles: Callable[[Path, str], bool] = lambda path, text: False
    """Whether a file that cannot be parsed was probably meant to be of this format."""
    refusal: Callable[[Mapping[str, Json]], str | None] = lambda data: None
    """Why data that is nearly this format is not, for the message about a file in no known format."""
    evaluator_names: Callable[[], Mapping[str, str]] = dict
    """Names that this format has for Proctor's evaluators."""
    agent_hint: str = ""
    """How a file of this format names its agent: the middle of a sentence, such as "add `agent: app.py:agent`, or "."""
    only_answers: bool = False
    """Whether its files can expect something of an answer alone, and nothing of tool calls, tokens or time."""
    edit: Callable[[Path, str, Suite, Mapping[int, Case]], str] | None = None
    """The text of a suite with some of its cases changed and every other line as it was, if the format can do that."""
    dialects: Mapping[str, Callable[[Sequence[Suite]], Written]] = field(default_factory=dict)
    """Other names under which suites are written, in a spelling of their own that this format reads as well."""


class Format(Protocol):
    """A module that knows one file format. One that is installed with another package may leave out `DECLARED`."""

    NAME: str
    DECLARED: Declaration

    def recognises(self, path: Path, data: Json) -> bool: ...

    def read(self, document: Document) -> list[Suite]: ...

    def write(self, suites: Sequence[Suite], ending: str = "") -> Written: ...


def mentions_key(text: str, *keys: str) -> bool:
    """Whether one of the keys stands in text that cannot be parsed, as JSON or YAML write a key."""
    return re.search(rf'(?:^|[{{,\s"])(?:{"|".join(keys)})"?\s*:', text) is not None


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
            if field.name not in written and getattr(thing, field.name) != _default(field)
        ),
    )


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


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


def moved(suite: Suite, folder: Path) -> Suite:
    """`suite` as it must be written in `folder`; what is not found beside it now is left as it stands."""
    old, new = suite.base, folder.resolve()
    if old is None or old == new:
        return suite
    move = _Move(old, new)
    return replace(
        suite,
        agent=move.agent(suite.agent),
        agents={name: move.agent(agent) for name, agent in suite.agents.items()},
        reexecute=move.tools(suite.reexecute),
        evaluators=move.specs(suite.evaluators) or (),
        cases=tuple(move.case(case) for case in suite.cases),
    )


class _Move:
    """From one folder to another."""

    def __init__(self, old: Path, new: Path) -> None:
        self._old = old
        self._new = new

    def path(self, text: str) -> str:
        if Path(text).is_absolute() or not (self._old / text).exists():
            return text
        return Path(os.path.relpath(self._old / text, self._new)).as_posix()

    def reference(self, text: str) -> str:
        where, colon, name = text.rpartition(":")
        return f"{self.path(where)}:{name}" if colon and where.endswith(".py") else text

    def agent(self, agent: Json) -> Json:
        if isinstance(agent, str):
            return self.reference(agent)
        if isinstance(agent, Mapping) and isinstance(agent.get("python"), str):
            return {**agent, "python": self.reference(agent["python"])}
        return agent

    def tools(self, given: Json) -> Json:
        if isinstance(given, Mapping):
            return {name: self.reference(reference) for name, reference in given.items()}
        return self.reference(given) if isinstance(given, str) else given

    def specs(self, specs: tuple[EvaluatorSpec, ...] | None) -> tuple[EvaluatorSpec, ...] | None:
        if specs is None:
            return None
        return tuple(
            replace(spec, name=self.reference(spec.name), arguments=self._parts(spec.arguments) or {}) for spec in specs
        )

    def case(self, case: Case) -> Case:
        return replace(
            case,
            evaluators=self.specs(case.evaluators),
            turns=tuple(self._turn(t) for t in case.turns),
            final_state=self._parts(case.final_state),
            doubles={tool: tuple(map(self._double, given)) for tool, given in case.doubles.items()},
        )

    def _double(self, double: Double) -> Double:
        return replace(double, arguments=self._arguments(double.arguments))

    def _turn(self, turn: Turn) -> Turn:
        calls = turn.expected.tool_calls
        expected = turn.expected if not calls else replace(turn.expected, tool_calls=tuple(map(self._call, calls)))
        attachments = tuple(self._attachment(item) for item in turn.attachments)
        return replace(turn, expected=expected, evaluators=self.specs(turn.evaluators), attachments=attachments)

    def _attachment(self, attachment: Attachment) -> Attachment:
        return attachment if attachment.path is None else replace(attachment, path=self.path(attachment.path))

    def _call(self, call: ExpectedCall) -> ExpectedCall:
        return replace(call, arguments=self._arguments(call.arguments))

    def _arguments(self, arguments: Mapping[str, Matcher] | None) -> Mapping[str, Matcher] | None:
        if arguments is None:
            return None
        return {name: self._matcher(matcher) for name, matcher in arguments.items()}

    def _matcher(self, matcher: Matcher) -> Matcher:
        """The same with its predicates moved, however deep they stand."""
        if isinstance(matcher, Predicate):
            return Predicate(self.reference(matcher.reference), self._new)
        form = matcher.to_json()
        moved_form = self._parts(form)
        return matcher if moved_form == form else parse(moved_form, self._new)

    def _parts(self, value: Json) -> Json:
        if isinstance(value, list):
            return [self._parts(item) for item in value]
        if not isinstance(value, Mapping) or "$equals" in value:
            return value
        moved_parts = {name: self._parts(item) for name, item in value.items()}
        if isinstance(value.get("$predicate"), str):
            return {**value, "$predicate": self.reference(value["$predicate"])}
        return moved_parts


def slug(text: str, longest: int | None = 60) -> str:
    """`"Asks for a refund!"` as `asks-for-a-refund`; empty when there is nothing to make one of."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:longest].rstrip("-")


class UniqueIds:
    """Hands out each id once; a taken one gets `-2`, `-3`, and so on at its end."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._last: dict[str, int] = {}

    def preview(self, wanted: str) -> str:
        """The id that `claim` would give."""
        number = self._last.get(wanted, 1)
        candidate = wanted if number == 1 else f"{wanted}-{number}"
        while candidate in self._taken:
            number += 1
            candidate = f"{wanted}-{number}"
        self._last[wanted] = number
        return candidate

    def claim(self, wanted: str) -> str:
        given = self.preview(wanted)
        self._taken.add(given)
        return given
