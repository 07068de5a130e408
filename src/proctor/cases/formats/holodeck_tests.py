"""Reads the tests of a HoloDeck agent: a message or a conversation, what is expected, and what scores it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from proctor.cases.fields import Document, Fields
from proctor.cases.formats.holodeck_metrics import read_metrics
from proctor.cases.formats.holodeck_turns import read_turn
from proctor.cases.formats.ids import UniqueIds
from proctor.cases.model import NOTHING, Case, EvaluatorSpec, Turn
from proctor.cases.source import Pointer
from proctor.plain import Json
from proctor.records import record

EXPECTED_TOOLS = EvaluatorSpec("ExpectedTools", label="expected_tools", scope="turn")

_OF_ONE_TURN = ("input", "ground_truth", "expected_tools", "files", "retrieval_context")

_UNREADABLE = Turn(None, evaluators=(EXPECTED_TOOLS,))
"""Stands for a turn whose problems are reported, so that nothing more is said about it."""


@record
class AgentTests:
    """The tests of one file. Attachments start from the agent's folder, wherever the tests stand."""

    document: Document
    folder: Path
    defaults: tuple[EvaluatorSpec, ...]

    def read(self, tests: list[Json], pointer: Pointer) -> tuple[Case, ...]:
        ids = UniqueIds()
        cases = [self._test(test, (*pointer, index), f"test-{index + 1}", ids) for index, test in enumerate(tests)]
        bare = [index for index, case in enumerate(cases) if not self._is_scored(case)]
        if len(bare) > 1 and len(bare) == len(cases):
            self.document.problem(pointer, "holds no test that can be scored; give 'evaluations' or 'expected_tools'")
        else:
            for index in bare:
                self.document.problem((*pointer, index), "cannot be scored; give 'evaluations' or 'expected_tools'")
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
            turns: tuple[Turn, ...] = (read_turn(fields, self.folder),)
            evaluators = _with_tools(metrics, self.defaults, turns[0])
        else:
            turns, evaluators = self._conversation(fields, metrics), metrics
        extra = fields.extensions()
        fields.done()
        return Case(case_id, turns, description=name, evaluators=evaluators, extra=extra or NOTHING)

    def _conversation(self, fields: Fields, metrics: tuple[EvaluatorSpec, ...] | None) -> tuple[Turn, ...]:
        for name in _OF_ONE_TURN:
            if fields.take(name) is not None:
                fields.problem(name, "cannot stand beside 'turns'; move it into one of them")
        inherited = self.defaults if metrics is None else metrics
        turns = fields.each("turns", lambda data, pointer: self._turn(data, pointer, inherited), least=1)
        return tuple(turns) or (_UNREADABLE,)

    def _turn(self, data: Json, pointer: Pointer, inherited: tuple[EvaluatorSpec, ...]) -> Turn:
        fields = Fields(self.document, data, pointer)
        if not fields.valid:
            return _UNREADABLE
        turn = read_turn(fields, self.folder)
        evaluators = _with_tools(self._metrics(fields), inherited, turn)
        metadata = fields.mapping("turn_config")
        extra = fields.extensions()
        fields.done()
        return replace(turn, evaluators=evaluators, metadata=metadata or NOTHING, extra=extra or NOTHING)

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
