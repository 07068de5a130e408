"""Reads the tests of a HoloDeck agent: a message or a conversation, what is expected, and what scores it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from proctor.base.documents import Document, Fields, kind
from proctor.base.json_data import UNSET, Json
from proctor.base.regexes import check_pattern
from proctor.base.source import Pointer
from proctor.cases.formats.holodeck.metrics import read_metrics
from proctor.cases.ids import UniqueIds
from proctor.cases.matchers import Equals, Fuzzy, Matcher, Regex
from proctor.cases.suite import NO_EXPECTATION, Attachment, Case, EvaluatorSpec, Expected, ExpectedCall, Turn

FILE_TYPES = ("image", "pdf", "text", "excel", "word", "powerpoint", "csv")
MOST_FILES = 10
SCORE_IT = "give 'evaluations' or 'expected_tools'"
MATCHER_KEYS = frozenset({"fuzzy", "regex"})


EXPECTED_TOOLS = EvaluatorSpec("ExpectedTools", label="expected_tools", scope="turn")

_OF_ONE_TURN = ("input", "ground_truth", "expected_tools", "files", "retrieval_context")

_UNREADABLE = Turn(None, evaluators=(EXPECTED_TOOLS,))
"""Stands for a turn whose problems are reported, so that nothing more is said about it."""


def is_conversation(case: Case) -> bool:
    """Whether a test was written with `turns`, be it only one: such a turn has evaluators of its own."""
    return len(case.turns) > 1 or case.turns[0].evaluators is not None


@dataclass(frozen=True, slots=True)
class AgentTests:
    """The tests of one file. Attachments start from the agent's folder, wherever the tests stand."""

    document: Document
    folder: Path
    defaults: tuple[EvaluatorSpec, ...]
    to_be_completed: bool = False
    """Whether the files that tests name may be missing still."""

    def read(self, tests: list[Json], pointer: Pointer) -> tuple[Case, ...]:
        ids = UniqueIds()
        cases = [self._test(test, (*pointer, index), f"test-{index + 1}", ids) for index, test in enumerate(tests)]
        bare = [index for index, case in enumerate(cases) if not self._is_scored(case)]
        if len(bare) > 1 and len(bare) == len(cases):
            self.document.warn(pointer, f"holds no test that can be scored; {SCORE_IT}")
        else:
            for index in bare:
                self.document.warn((*pointer, index), f"is run, but nothing scores it; {SCORE_IT}")
        return tuple(cases)

    def _is_scored(self, case: Case) -> bool:
        inherited = self.defaults if case.evaluators is None else case.evaluators
        return any(inherited if turn.evaluators is None else turn.evaluators for turn in case.turns)

    def _test(self, data: Json, pointer: Pointer, unnamed: str, ids: UniqueIds) -> Case:
        fields = Fields(self.document, data, pointer)
        if not fields.valid:
            return Case(id=unnamed, turns=(_UNREADABLE,))
        name = fields.text("name", blank=False) or ""
        case_id = ids.claim(name or unnamed)
        if name and case_id != name:
            self.document.warn(fields.at("name"), f"is not the only {name!r}; this test is reported as {case_id!r}")
        metrics = self._metrics(fields)
        if fields.take("turns") is None:
            turns: tuple[Turn, ...] = (read_turn(fields, None if self.to_be_completed else self.folder),)
            evaluators = _with_tools(metrics, self.defaults, turns[0])
        else:
            turns, evaluators = self._conversation(fields, metrics), metrics
        extra = fields.extensions()
        fields.done()
        return Case(
            case_id,
            turns,
            description=name,
            evaluators=evaluators,
            extra=extra,
            position=fields.position("name"),
        )

    def _conversation(self, fields: Fields, metrics: tuple[EvaluatorSpec, ...] | None) -> tuple[Turn, ...]:
        for name in _OF_ONE_TURN:
            if fields.take(name) is not None:
                fields.problem(name, "cannot stand beside 'turns'; move it into one of them")
        inherited = self.defaults if metrics is None else metrics
        turns = fields.each("turns", lambda data, pointer: self._turn(data, pointer, inherited), least=1)
        if len(turns) == 1 and turns[0].evaluators is None:
            turns = [replace(turns[0], evaluators=inherited)]
        return tuple(turns) or (_UNREADABLE,)

    def _turn(self, data: Json, pointer: Pointer, inherited: tuple[EvaluatorSpec, ...]) -> Turn:
        fields = Fields(self.document, data, pointer)
        if not fields.valid:
            return _UNREADABLE
        turn = read_turn(fields, None if self.to_be_completed else self.folder)
        evaluators = _with_tools(self._metrics(fields), inherited, turn)
        metadata = fields.mapping("turn_config")
        extra = fields.extensions()
        fields.done()
        return replace(turn, evaluators=evaluators, metadata=metadata or {}, extra=extra)

    def _metrics(self, fields: Fields) -> tuple[EvaluatorSpec, ...] | None:
        """A list replaces what would be inherited; an empty one does not."""
        items = fields.items("evaluations")
        return read_metrics(self.document, items, fields.at("evaluations")) if items else None


def _with_tools(
    own: tuple[EvaluatorSpec, ...] | None, inherited: tuple[EvaluatorSpec, ...], turn: Turn
) -> tuple[EvaluatorSpec, ...] | None:
    if turn.expected.tool_calls is None:
        return own
    return (*(inherited if own is None else own), EXPECTED_TOOLS)


def read_turn(fields: Fields, folder: Path | None) -> Turn:
    """The message that `fields` describe; its files must be there, from `folder` on, if one is given."""
    text = fields.text("input", required=True, blank=False) or ""
    truth = fields.text("ground_truth", UNSET, blank=False)
    calls = _expected_calls(fields)
    files = fields.items("files") or []
    if len(files) > MOST_FILES:
        fields.problem("files", f"has {len(files)} files; {MOST_FILES} are the most")
    attachments = tuple(_attachment(fields, item, index, folder) for index, item in enumerate(files))
    has_expectation = truth is not UNSET or calls is not None
    return Turn(
        text,
        expected=Expected(output=truth, tool_calls=calls) if has_expectation else NO_EXPECTATION,
        retrieval_context=fields.texts("retrieval_context") or None,
        attachments=attachments,
    )


def _expected_calls(fields: Fields) -> tuple[ExpectedCall, ...] | None:
    items = fields.items("expected_tools")
    if items == []:
        fields.document.warn(fields.at("expected_tools"), "is empty and asserts nothing, not even that no tool is used")
    if not items:
        return None
    return tuple(_expected_call(fields, item, (*fields.at("expected_tools"), i)) for i, item in enumerate(items))


def _expected_call(parent: Fields, item: Json, pointer: Pointer) -> ExpectedCall:
    document = parent.document
    if isinstance(item, str):
        if not item.strip():
            document.problem(pointer, "must not be blank; name a tool")
        return ExpectedCall(item, substring=True, extra_arguments=True)
    if not isinstance(item, dict):
        document.problem(pointer, f"must be a tool's name or an object with 'name', not {kind(item)}")
        return ExpectedCall("")
    fields = Fields(document, item, pointer)
    name = fields.text("name", required=True, blank=False) or ""
    arguments = fields.mapping("args")
    count = fields.integer("count", 1, least=1)
    fields.done()
    matchers = None
    if arguments is not None:
        matchers = {key: _matcher(fields, value, (*fields.at("args"), key)) for key, value in arguments.items()}
    return ExpectedCall(name, matchers, count, substring=True, extra_arguments=True)


def _matcher(fields: Fields, value: Json, pointer: Pointer) -> Matcher:
    """An object with `fuzzy` or `regex` is a matcher, anything else is the very value."""
    if not isinstance(value, dict) or MATCHER_KEYS.isdisjoint(value):
        return Equals(value)
    if len(value) != 1:
        fields.document.problem(pointer, f"must have one key, fuzzy or regex, and not {', '.join(sorted(value))}")
        return Equals(value)
    key, operand = next(iter(value.items()))
    place = (*pointer, key)
    if key == "regex":
        reason = _pattern_problem(operand)
        if reason is None:
            return Regex(operand)
        fields.document.problem(place, reason)
    elif operand is None or isinstance(operand, (dict, list)):
        fields.document.problem(place, f"must be text or a number, not {kind(operand)}")
    return Fuzzy(operand)


def _pattern_problem(pattern: Json) -> str | None:
    if not isinstance(pattern, str):
        return f"must be a pattern, not {kind(pattern)}"
    try:
        check_pattern(pattern)
    except ValueError as error:
        return f"{pattern!r} is not a pattern: {error}"
    return None


def _attachment(parent: Fields, item: Json, index: int, folder: Path | None) -> Attachment:
    fields = Fields(parent.document, item, (*parent.at("files"), index))
    if not fields.valid:
        return Attachment()
    path, url = fields.text("path", blank=False), fields.text("url", blank=False)
    if (fields.take("path") is None) == (fields.take("url") is None):
        fields.document.problem(fields.pointer, "needs either 'path' or 'url'")
    elif path is not None and folder is not None and not _exists(folder / path):
        fields.problem("path", f"names {path}, which is not there (looked in {folder})")
    if fields.take("type") is None:
        fields.document.problem(fields.pointer, f"needs 'type', one of {', '.join(FILE_TYPES)}")
    options = {
        "pages": _pages(fields),
        "sheet": fields.text("sheet", blank=False),
        "range": fields.text("range", blank=False),
        "cache": fields.flag("cache"),
    }
    attachment = Attachment(
        path,
        url,
        kind=fields.choice("type", FILE_TYPES),
        description=fields.text("description"),
        options={key: value for key, value in options.items() if value is not None},
    )
    fields.done()
    return attachment


def _pages(fields: Fields) -> list[int] | None:
    pages = fields.items("pages")
    for index, page in enumerate(pages or []):
        if isinstance(page, bool) or not isinstance(page, int) or page < 1:
            fields.document.problem((*fields.at("pages"), index), "must be a page number, from 1")
    return pages


def _exists(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
