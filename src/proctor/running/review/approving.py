"""What an agent did becomes what is expected of it, once a person has looked at it and accepts it.

An expectation taken from the very answer that is judged proves nothing: it holds whatever the agent does. One that was
accepted earlier, and says when, from which run and by whom, is something later answers can be compared with.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from proctor.agents.reply import Reply
from proctor.base.errors import UsageError
from proctor.base.json_data import Json, json_text, to_json
from proctor.cases.evaluator_specs import with_implied
from proctor.cases.files.digests import FileDigests
from proctor.cases.identity import question_key
from proctor.cases.matchers import Equals
from proctor.cases.suite import Case, ExpectedCall, Suite, Turn
from proctor.results.run import Outcome, TrialResult
from proctor.results.store.run_files import open_run
from proctor.running.plan import Selection
from proctor.running.review.grading import FileRow
from proctor.running.run import RunRequest, run_suites
from proctor.running.settings import RunOptions

ORIGIN_KEY = "recorded"
"""The metadata of a case that says where its expectations come from."""

Part = Literal["both", "answer", "tools"]
CONTEXT_KEYS = ("schema", "suite", "question", "trial", "answer", "tools")
"""What a row shows to the person who accepts; it may come back and is not read."""


@dataclass(frozen=True, slots=True)
class ApprovalProposal:
    """One case with what the agent did, to be accepted or not."""

    case: Case
    trial: TrialResult | None
    run_id: str
    agent: str
    refusal: str = ""
    """Why it cannot be recorded."""
    chosen: str = ""
    """Which trial this is, and why it was chosen: `trial 3 of 5, the first of 2 that passed`."""

    def row(self) -> dict[str, Json]:
        """For a file: `accept` is left to be filled in."""
        row: dict[str, Json] = {"case": self.case.id, "question": [turn.input for turn in self.case.turns]}
        if self.refusal or self.trial is None:
            return {**row, "refusal": self.refusal}
        replies = self.trial.replies
        row |= {"trial": self.chosen, "answer": [reply.answer for reply in replies]}
        row |= {"tools": [[[call.name, to_json(call.arguments)] for call in reply.tool_calls] for reply in replies]}
        return {**row, "accept": None, "by": None}


def proposals(
    suite: Suite, trials: Iterable[TrialResult], run_id: str, agent: str, select: Selection
) -> list[ApprovalProposal]:
    """Each selected case with one of its trials, in the order of the suite."""
    digests = FileDigests(suite.base)
    found: dict[str, list[TrialResult]] = {}
    for trial in trials:
        if trial.suite == suite.name:
            found.setdefault(trial.case.id, []).append(trial)
    offered: list[ApprovalProposal] = []
    for case in suite.cases:
        if select(suite, case):
            shown, why = _choose_trial(found.get(case.id, []))
            offered.append(
                ApprovalProposal(case, shown, run_id, agent, _refusal(digests.with_digests(case), shown), why)
            )
    return offered


def _choose_trial(trials: Sequence[TrialResult]) -> tuple[TrialResult | None, str]:
    """The first trial that passed, else the first that was answered, else the first; and which one that is."""
    if not trials:
        return None, ""
    trials = sorted(trials, key=lambda trial: trial.number)
    passed = [trial for trial in trials if trial.outcome is Outcome.PASSED and trial.scores]
    answered = [trial for trial in trials if trial.is_answered]
    shown = (passed or answered or trials)[0]
    name = f"trial {shown.number} of {len(trials)}"
    if len(trials) == 1:
        return shown, name
    kind, among = ("passed", passed) if passed else ("was answered", answered)
    if not among:
        return shown, f"{name}, of which none was answered"
    first = f"the only one that {kind}" if len(among) == 1 else f"the first of {len(among)} that {_were(kind)}"
    alike = sum(_behavior(trial) == _behavior(shown) for trial in trials)
    same = "all did the same" if alike == len(trials) else f"{alike} of {len(trials)} did the same"
    return shown, f"{name}, {first}; {same}"


def _were(kind: str) -> str:
    return kind.replace("was ", "were ")


def _behavior(trial: TrialResult) -> str:
    """What a trial answered and called, to compare with what others did."""
    return json_text([[r.answer, [[c.name, to_json(c.arguments)] for c in r.tool_calls]] for r in trial.replies])


def _refusal(case: Case, trial: TrialResult | None) -> str:
    if case.skip is not None:
        return f"it is skipped: {case.skip}"
    if trial is None:
        return "the run has no answer to it"
    if question_key(case) != question_key(trial.case):
        return "it asks something else now than it did in the run"
    if case.scenario is not None:
        return "its user is simulated, so that no two conversations are the same"
    if not trial.is_answered or len(trial.replies) < len(case.turns):
        return trial.reason or "the agent gave no answer"
    return ""


def run_unscored(
    suite: Suite, options: RunOptions, agent: Any, select: Selection, store: Path
) -> tuple[str, str, list[TrialResult]]:
    """Put the cases to the agent, and score nothing: the run's id, the agent's name, and what it did."""
    bare = replace(suite, evaluators=(), cases=tuple(_without_evaluators(case) for case in suite.cases))
    run, _ = run_suites(RunRequest([bare], options, agent, select, store, key="record"))
    return run.id, run.suites[0].agent, list(run.trials)


def from_run(store: Path, run_id: str, suite: str) -> tuple[str, str, list[TrialResult]]:
    """The same, of a run that is kept."""
    _, run = open_run(store, run_id)
    info = next((item for item in run.suites if item.name == suite), None)
    if info is None:
        names = ", ".join(repr(item.name) for item in run.suites)
        raise UsageError(f"run {run.id} has no suite {suite!r}; it has {names}")
    return run.id, info.agent, list(run.trials)


def _without_evaluators(case: Case) -> Case:
    return replace(case, evaluators=(), turns=tuple(replace(turn, evaluators=None) for turn in case.turns))


def with_expectations(suite: Suite, accepted: Mapping[str, tuple[ApprovalProposal, str]], part: Part) -> Suite:
    """The suite in which accepted cases expect what the agent did; `accepted` has who accepted each, by case."""

    def change(case: Case) -> Case:
        if case.id not in accepted:
            return case
        return _with_needed_evaluators(suite, case, _with_approved_reply(case, *accepted[case.id], part))

    return replace(suite, cases=tuple(change(case) for case in suite.cases))


def without_unchecked_cases(suite: Suite) -> tuple[Suite, list[str]]:
    """The suite without the cases of which nothing is expected yet, which no suite may have, and their ids."""
    kept = [case for case in suite.cases if any(suite.evaluators_of(case, turn) for turn in case.turns)]
    ids = {case.id for case in kept}
    left_out = [case.id for case in suite.cases if case.id not in ids]
    return replace(suite, cases=tuple(kept)), left_out


def _with_needed_evaluators(suite: Suite, before: Case, case: Case) -> Case:
    """With an evaluator for what is expected now, where the suite has none for it.

    What the expectations so far brought along was not the user's choice, so that a recorded answer is compared as well.
    """
    has_final_state = case.final_state is not None
    named = suite.evaluators_of(before)
    came_along = not suite.evaluators and named == with_implied((), before.turns, final_state=has_final_state)
    needed = with_implied(() if came_along else named, case.turns, final_state=has_final_state)
    return case if needed == named else replace(case, evaluators=needed)


def _with_approved_reply(case: Case, proposal: ApprovalProposal, accepted_by: str, part: Part) -> Case:
    trial = proposal.trial
    assert trial is not None
    origin: dict[str, Json] = {
        "run": proposal.run_id,
        "at": _timestamp(trial.started_at),
        "agent": proposal.agent,
        "agent_fingerprint": trial.agent,
        "accepted_by": accepted_by,
        "accepted_at": _timestamp(None),
    }
    turns = tuple(_turn(turn, reply, part) for turn, reply in zip(case.turns, trial.replies, strict=False))
    return replace(case, turns=turns, metadata={**case.metadata, ORIGIN_KEY: origin})


def _turn(turn: Turn, reply: Reply, part: Part) -> Turn:
    expected = turn.expected
    if part != "tools":
        expected = replace(expected, output=reply.answer)
    if part != "answer":
        calls = tuple(ExpectedCall(call.name, _literal_args(call.arguments)) for call in reply.tool_calls)
        expected = replace(expected, tools=calls)
    return replace(turn, expected=expected)


def _literal_args(arguments: Mapping[str, Json]) -> dict[str, Any]:
    """Whatever an argument looks like, it is meant literally."""
    return {name: Equals(to_json(value)) for name, value in arguments.items()}


def read_approvals(
    rows: Sequence[FileRow], offered: Sequence[ApprovalProposal], who: str
) -> dict[str, tuple[ApprovalProposal, str]]:
    """Who accepted which cases, as a file says; raises `UsageError` with every row that cannot be taken."""
    known = {proposal.case.id: proposal for proposal in offered}
    accepted: dict[str, tuple[ApprovalProposal, str]] = {}
    problems: list[str] = []
    for row in rows:
        data = row.data if isinstance(row.data, Mapping) else {}
        proposal = known.get(str(data.get("case")))
        if problem := _row_problem(row.data, proposal):
            problems.append(f"{row.place}: {problem}")
        elif data.get("accept") and proposal is not None:
            accepted[proposal.case.id] = proposal, str(data.get("by") or who)
    if problems:
        raise UsageError("\n".join(problems))
    return accepted


def _row_problem(data: Json, proposal: ApprovalProposal | None) -> str:
    if not isinstance(data, Mapping) or "case" not in data:
        return 'must be an object such as {"case": "refund", "accept": true}'
    if unknown := [str(key) for key in data if key not in ("case", "accept", "by", "refusal", *CONTEXT_KEYS)]:
        return f"has no use for {unknown[0]!r}"
    if proposal is None:
        return f"there is no case {data['case']!r} to accept"
    if data.get("accept") not in (True, False, None):
        return "accept must be true, false or null"
    return (
        f"{proposal.case.id!r} cannot be accepted: {proposal.refusal}"
        if data.get("accept") and proposal.refusal
        else ""
    )


def _timestamp(seconds: float | None) -> str:
    now = datetime.datetime.now(datetime.UTC) if seconds is None else None
    moment = now or datetime.datetime.fromtimestamp(seconds or 0.0, datetime.UTC)
    return moment.isoformat(timespec="seconds")
