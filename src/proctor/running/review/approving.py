"""Saves the output of an agent as the expectation of a case, once a person has approved it.

An expectation taken from the answer that it scores proves nothing: it always passes. One that a person approved before,
with the time, the run and the person recorded in the case, is something to compare later answers with.
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
from proctor.base.masking import is_masked, texts_in
from proctor.cases.files.boundaries import allowed_folders
from proctor.cases.files.digests import FileDigests
from proctor.cases.matchers import Equals
from proctor.cases.suite import Case, ExpectedCall, Suite, Turn, with_implied
from proctor.results.masking import mask_case, masked_parts
from proctor.results.score import Outcome
from proctor.results.store.run_files import open_run
from proctor.results.trial import Trial
from proctor.running.plan import Selection
from proctor.running.reuse import is_same_question
from proctor.running.review.grading import FileRow
from proctor.running.run import RunRequest, raise_if_stopped, run_suites
from proctor.running.settings import RunOptions

ORIGIN_KEY = "recorded"
"""The key in a case's metadata for the origin of its expectations."""

Part = Literal["both", "answer", "tools"]
CONTEXT_KEYS = ("schema", "suite", "question", "trial", "answer", "tools")
"""Keys of a row that are only shown to the person who approves; they are ignored when the file is read."""


@dataclass(frozen=True, slots=True)
class ApprovalProposal:
    """One case with the agent's output, to approve or not."""

    case: Case
    trial: Trial | None
    run_id: str
    agent: str
    refusal: str = ""
    """Why it cannot be approved."""
    chosen: str = ""
    """Which trial was chosen, and why: `trial 3 of 5, the first of 2 that passed`."""

    def row(self) -> dict[str, Json]:
        """The proposal as a row of a file; the person fills in `accept`."""
        turns = mask_case(self.case).turns
        row: dict[str, Json] = {"case": self.case.id, "question": [turn.input for turn in turns]}
        if self.refusal or self.trial is None:
            return {**row, "refusal": self.refusal}
        replies = self.trial.replies
        row |= {"trial": self.chosen, "answer": [reply.answer for reply in replies]}
        row |= {"tools": [[[call.name, to_json(call.arguments)] for call in reply.tool_calls] for reply in replies]}
        return {**row, "accept": None, "by": None}


def proposals(
    suite: Suite, trials: Iterable[Trial], run_id: str, agent: str, select: Selection
) -> list[ApprovalProposal]:
    """Each selected case with one of its trials, in the order of the suite."""
    digests = FileDigests(suite.base, allowed_folders(suite))
    trials_by_case: dict[str, list[Trial]] = {}
    for trial in trials:
        if trial.suite == suite.name:
            trials_by_case.setdefault(trial.case.id, []).append(trial)
    offers: list[ApprovalProposal] = []
    for case in suite.cases:
        if select(suite, case):
            chosen, why = _choose_trial(trials_by_case.get(case.id, []))
            refusal = _refusal(digests.with_digests(case), chosen)
            offers.append(ApprovalProposal(case, chosen, run_id, agent, refusal, why))
    return offers


def _choose_trial(trials: Sequence[Trial]) -> tuple[Trial | None, str]:
    """The first trial that passed, else the first with an answer, else the first; and a text that says which."""
    if not trials:
        return None, ""
    trials = sorted(trials, key=lambda trial: trial.number)
    passed = [trial for trial in trials if trial.outcome is Outcome.PASSED and trial.scores]
    answered = [trial for trial in trials if trial.is_answered]
    chosen = (passed or answered or trials)[0]
    name = f"trial {chosen.number} of {len(trials)}"
    if len(trials) == 1:
        return chosen, name
    kind, among = ("passed", passed) if passed else ("was answered", answered)
    if not among:
        return chosen, f"{name}, of which none was answered"
    first = f"the only one that {kind}" if len(among) == 1 else f"the first of {len(among)} that {_were(kind)}"
    alike = sum(_behavior(trial) == _behavior(chosen) for trial in trials)
    same = "all did the same" if alike == len(trials) else f"{alike} of {len(trials)} did the same"
    return chosen, f"{name}, {first}; {same}"


def _were(kind: str) -> str:
    return kind.replace("was ", "were ")


def _behavior(trial: Trial) -> str:
    """The answers and tool calls of a trial as text, to compare trials."""
    return json_text([[r.answer, [[c.name, to_json(c.arguments)] for c in r.tool_calls]] for r in trial.replies])


def _refusal(case: Case, trial: Trial | None) -> str:
    if case.skip is not None:
        return f"it is skipped: {case.skip}"
    if trial is None:
        return "the run has no trial of it"
    if not is_same_question(case, trial.case):
        return "its input has changed since the run"
    if case.scenario is not None:
        return "its user is simulated, so every conversation is different"
    if not trial.is_answered or len(trial.replies) < len(case.turns):
        return trial.end_reason or "the agent gave no answer"
    if _is_masked(trial):
        return "secrets in what the agent did are masked, so it cannot be expected; write the expectation yourself"
    return ""


def _is_masked(trial: Trial) -> bool:
    """Whether secrets are masked in what becomes an expectation: the answers, or the arguments of calls."""
    masked = {part.partition("].")[2] for part in masked_parts(trial) if part.startswith("replies[")}
    arguments = [call.arguments for call in trial.tool_calls] if "tool_calls" in masked else []
    return not masked.isdisjoint({"text", "outputs", "structured"}) or any(map(is_masked, texts_in(arguments)))


def run_unscored(
    suite: Suite, options: RunOptions, agent: Any, select: Selection, store: Path
) -> tuple[str, str, list[Trial]]:
    """Run the cases without scoring; returns the run's id, the agent's name and the trials."""
    bare = replace(suite, evaluators=(), cases=tuple(_without_evaluators(case) for case in suite.cases))
    run, _ = run_suites(RunRequest([bare], options, agent, select, store, key="record"))
    raise_if_stopped(run)
    return run.id, run.suites[0].agent, list(run.trials)


def from_run(store: Path, run_id: str, suite: str) -> tuple[str, str, list[Trial]]:
    """The id, the agent's name and the trials of a stored run."""
    _, run = open_run(store, run_id)
    info = next((item for item in run.suites if item.name == suite), None)
    if info is None:
        names = ", ".join(repr(item.name) for item in run.suites)
        raise UsageError(f"run {run.id} has no suite {suite!r}; it has {names}")
    return run.id, info.agent, list(run.trials)


def _without_evaluators(case: Case) -> Case:
    turns = tuple(replace(turn, evaluators=None) for turn in case.turns)
    return replace(case, evaluators=(), turns=turns, implied=False)


def with_expectations(suite: Suite, approved: Mapping[str, tuple[ApprovalProposal, str]], part: Part) -> Suite:
    """The suite in which approved cases expect the agent's output; `approved` has proposal and person, by case."""

    def change(case: Case) -> Case:
        if case.id not in approved:
            return case
        return _with_needed_evaluators(suite, case, _with_approved_reply(case, *approved[case.id], part))

    return replace(suite, cases=tuple(change(case) for case in suite.cases))


def without_unchecked_cases(suite: Suite) -> tuple[Suite, list[str]]:
    """The suite without cases that have nothing to check, which a suite may not contain; and their ids."""
    checked = [case for case in suite.cases if any(suite.evaluators_of(case, turn) for turn in case.turns)]
    ids = {case.id for case in checked}
    unchecked = [case.id for case in suite.cases if case.id not in ids]
    return replace(suite, cases=tuple(checked)), unchecked


def _with_needed_evaluators(suite: Suite, before: Case, case: Case) -> Case:
    """The case with evaluators for its new expectations, if these do not bring their own and the suite has none.

    Evaluators that the earlier expectations implied were not the user's choice, so they are derived again.
    """
    if case.implied:
        return case
    has_final_state = case.final_state is not None
    named = suite.evaluators_of(before)
    is_implied = not suite.evaluators and named == with_implied((), before.turns, final_state=has_final_state)
    needed = with_implied(() if is_implied else named, case.turns, final_state=has_final_state)
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
    """The arguments as literal values, even if one looks like a matcher."""
    return {name: Equals(to_json(value)) for name, value in arguments.items()}


def read_approvals(
    rows: Sequence[FileRow], proposals: Sequence[ApprovalProposal], who: str
) -> dict[str, tuple[ApprovalProposal, str]]:
    """The approved proposals and who approved them, by case; raises `UsageError` with every invalid row."""
    by_case = {proposal.case.id: proposal for proposal in proposals}
    approved: dict[str, tuple[ApprovalProposal, str]] = {}
    problems: list[str] = []
    for row in rows:
        data = row.data if isinstance(row.data, Mapping) else {}
        proposal = by_case.get(str(data.get("case")))
        if problem := _row_problem(row.data, proposal):
            problems.append(f"{row.place}: {problem}")
        elif data.get("accept") and proposal is not None:
            approved[proposal.case.id] = proposal, str(data.get("by") or who)
    if problems:
        raise UsageError("\n".join(problems))
    return approved


def _row_problem(data: Json, proposal: ApprovalProposal | None) -> str:
    if not isinstance(data, Mapping) or "case" not in data:
        return 'must be an object such as {"case": "refund", "accept": true}'
    if unknown := [str(key) for key in data if key not in ("case", "accept", "by", "refusal", *CONTEXT_KEYS)]:
        return f"unknown key {unknown[0]!r}"
    if proposal is None:
        return f"no case {data['case']!r} to approve"
    if data.get("accept") not in (True, False, None):
        return "accept must be true, false or null"
    return (
        f"{proposal.case.id!r} cannot be approved: {proposal.refusal}"
        if data.get("accept") and proposal.refusal
        else ""
    )


def _timestamp(seconds: float | None) -> str:
    now = datetime.datetime.now(datetime.UTC) if seconds is None else None
    moment = now or datetime.datetime.fromtimestamp(seconds or 0.0, datetime.UTC)
    return moment.isoformat(timespec="seconds")
