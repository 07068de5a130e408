"""Rewrites the relative paths in a suite, for a file in another folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from proctor.base.json_data import Json
from proctor.cases.matchers import Matcher, Predicate, parse
from proctor.cases.suite import AttachedFile, Case, EvaluatorSpec, ExpectedCall, Suite, ToolMock, Turn


def relocate(suite: Suite, folder: Path) -> Suite:
    """`suite` as it must be written in `folder`. A path at which there is no file now is left unchanged."""
    old, new = suite.base, folder.resolve()
    if old is None or old == new:
        return suite
    move = _Move(old, new)
    return replace(
        suite,
        agent=move.agent(suite.agent),
        arms={name: move.agent(agent) for name, agent in suite.arms.items()},
        rerun_tools=move.tools(suite.rerun_tools),
        depends_on=tuple(move.path(path) for path in suite.depends_on),
        allow_files_from=_folders_after(move, suite, old, new),
        evaluators=move.specs(suite.evaluators) or (),
        cases=tuple(move.case(case) for case in suite.cases),
    )


def _folders_after(move: _Move, suite: Suite, old: Path, new: Path) -> tuple[str, ...]:
    """The folders that the moved suite allows: also its former folder, if it attaches files from there."""
    folders = tuple(move.path(path) for path in suite.allow_files_from)
    paths = (file.path for case in suite.cases for turn in case.turns for file in turn.files if file.path is not None)
    if old.is_relative_to(new) or not any((old / path).exists() for path in paths):
        return folders
    return tuple(dict.fromkeys((*folders, Path(os.path.relpath(old, new)).as_posix())))


def absolute_agent(agent: Json, folder: Path) -> Json:
    """The reference of an agent that is written in a file in `folder`, as it is found from any folder."""
    if isinstance(agent, str):
        kind, colon, command = agent.partition(":")
        if colon and kind in ("cmd", "serve"):
            return {"command": command, "cwd": str(folder), "serve": kind == "serve", "name": command}
        where, colon, name = agent.rpartition(":")
        is_here = colon and where.endswith(".py") and (folder / where).is_file()
        return f"{folder / where}:{name}" if is_here else agent
    if isinstance(agent, Mapping) and isinstance(agent.get("python"), str):
        return {**agent, "python": absolute_agent(agent["python"], folder)}
    if isinstance(agent, Mapping) and isinstance(agent.get("command"), Mapping):
        return {"command": {**agent["command"], "cwd": str(folder / (agent["command"].get("cwd") or ""))}}
    if isinstance(agent, Mapping) and "command" in agent:
        return {**agent, "cwd": str(folder / (agent.get("cwd") or ""))}
    return agent


class _Move:
    """Rewrites references relative to `old` as references relative to `new`."""

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
        if isinstance(agent, Mapping) and "agent" in agent:  # an arm
            return {**agent, "agent": self.agent(agent["agent"])}
        return agent

    def tools(self, tools: Json) -> Json:
        if isinstance(tools, Mapping):
            return {name: self.reference(reference) for name, reference in tools.items()}
        return self.reference(tools) if isinstance(tools, str) else tools

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
            mocks={tool: tuple(map(self._mock, mocks)) for tool, mocks in case.mocks.items()},
        )

    def _mock(self, mock: ToolMock) -> ToolMock:
        return replace(mock, args=self._arguments(mock.args))

    def _turn(self, turn: Turn) -> Turn:
        calls = turn.expected.tools
        expected = turn.expected if not calls else replace(turn.expected, tools=tuple(map(self._call, calls)))
        if expected.state is not None:
            expected = replace(expected, state=self._parts(expected.state))
        files = tuple(self._file(file) for file in turn.files)
        return replace(turn, expected=expected, evaluators=self.specs(turn.evaluators), files=files)

    def _file(self, file: AttachedFile) -> AttachedFile:
        return file if file.path is None else replace(file, path=self.path(file.path))

    def _call(self, call: ExpectedCall) -> ExpectedCall:
        return replace(call, args=self._arguments(call.args))

    def _arguments(self, arguments: Mapping[str, Matcher] | None) -> Mapping[str, Matcher] | None:
        if arguments is None:
            return None
        return {name: self._matcher(matcher) for name, matcher in arguments.items()}

    def _matcher(self, matcher: Matcher) -> Matcher:
        """The matcher with its predicates rewritten, at any depth."""
        if isinstance(matcher, Predicate):
            return Predicate(self.reference(matcher.reference), self._new)
        form = matcher.to_json()
        new_form = self._parts(form)
        return matcher if new_form == form else parse(new_form, self._new)

    def _parts(self, value: Json) -> Json:
        if isinstance(value, list):
            return [self._parts(item) for item in value]
        if not isinstance(value, Mapping) or "$equals" in value:
            return value
        new_parts = {name: self._parts(item) for name, item in value.items()}
        if isinstance(value.get("$predicate"), str):
            return {**value, "$predicate": self.reference(value["$predicate"])}
        return new_parts
