"""Rewrites what a suite refers to by relative paths, for a file in another folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from proctor.base.json_data import Json
from proctor.cases.matchers import Matcher, Predicate, parse
from proctor.cases.suite import AttachedFile, Case, EvaluatorSpec, ExpectedCall, Suite, ToolMock, Turn


def relocate(suite: Suite, folder: Path) -> Suite:
    """`suite` as it must be written in `folder`; what is not found beside it now is left as it stands."""
    old, new = suite.base, folder.resolve()
    if old is None or old == new:
        return suite
    move = _Move(old, new)
    return replace(
        suite,
        agent=move.agent(suite.agent),
        agents={name: move.agent(agent) for name, agent in suite.agents.items()},
        rerun_tools=move.tools(suite.rerun_tools),
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
            mocks={tool: tuple(map(self._double, given)) for tool, given in case.mocks.items()},
        )

    def _double(self, double: ToolMock) -> ToolMock:
        return replace(double, args=self._arguments(double.args))

    def _turn(self, turn: Turn) -> Turn:
        calls = turn.expected.tools
        expected = turn.expected if not calls else replace(turn.expected, tools=tuple(map(self._call, calls)))
        attachments = tuple(self._attachment(item) for item in turn.files)
        return replace(turn, expected=expected, evaluators=self.specs(turn.evaluators), files=attachments)

    def _attachment(self, attachment: AttachedFile) -> AttachedFile:
        return attachment if attachment.path is None else replace(attachment, path=self.path(attachment.path))

    def _call(self, call: ExpectedCall) -> ExpectedCall:
        return replace(call, args=self._arguments(call.args))

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
