"""Cases that did not pass, for programs that mend them: id, place in the file, first divergence, how to repeat it."""

from __future__ import annotations

import shlex
from pathlib import Path

from proctor.base.json_data import Json, plain
from proctor.cases.formats.loading import case_lines
from proctor.reporting.call_pairs import CallPair, Fit, found_in_calls, pair_calls
from proctor.reporting.case_groups import FailingCase, failing_cases
from proctor.reporting.explain import answer, call_text, expected_call_text, expected_lines
from proctor.reporting.wording import decisive
from proctor.results.run import Run, SuiteInfo, TrialResult
from proctor.results.verdict import RunVerdict

TEXT = 2_000
"""Characters of an expectation or an answer."""
WRONG = (Fit.DIFFERS, Fit.MISSING, Fit.OUT_OF_ORDER, Fit.FORBIDDEN)


def failures(run: Run, verdict: RunVerdict) -> list[dict[str, Json]]:
    """One entry a case, failures before errors; empty where every case passed."""
    cases = failing_cases(run, verdict, limit=TEXT)
    if not cases:
        return []
    suites = {info.name: info for info in run.suites}
    wanted = {case.example.position for case in cases if case.example is not None}
    examples = {(trial.suite, trial.case.id): trial for trial in run.trials if trial.position in wanted}
    lines = {suite: _lines(suites[suite]) for suite in {case.suite for case in cases}}
    return [
        {
            "id": f"{case.suite}/{case.case_id}",
            "suite": case.suite,
            "case": case.case_id,
            "outcome": case.outcome.value,
            "flaky": case.is_flaky,
            "quarantined": case.quarantined,
            "counts": {outcome.value: count for outcome, count in case.counts.items()},
            "file": suites[case.suite].path,
            "line": lines[case.suite].get(case.case_id),
            "reasons": [plain(reason) for reason in case.reasons],
            "divergence": _divergence(examples.get((case.suite, case.case_id))),
            "reproduce": reproduce(run, suites[case.suite], case),
        }
        for case in cases
    ]


def _lines(info: SuiteInfo) -> dict[str, int]:
    """By case: its line, if the file is still there and still holds it."""
    return {} if info.path is None else case_lines(Path(info.path))


def reproduce(run: Run, info: SuiteInfo, case: FailingCase) -> str | None:
    """The command that runs this case alone; `None` for suites that were made in Python."""
    if info.path is None or info.path.endswith(".py"):
        return None
    words = ["proctor", "test", f"{info.path}::{case.case_id}"]
    given = run.options.get("agents")
    agents = given if isinstance(given, dict) else {}
    if isinstance(agents.get(info.agent), str):
        words += ["--agent", f"{info.agent}={agents[info.agent]}"]
    for name in ("agent", "judge"):
        if isinstance(run.options.get(name), str):
            words += [f"--{name}", str(run.options[name])]
    return shlex.join(words)


def _divergence(trial: TrialResult | None) -> dict[str, Json] | None:
    """Where the trial first does something else than was expected: a tool call; else the answer, or its absence."""
    if trial is None:
        return None
    for index, (turn, reply) in enumerate(zip(trial.case.turns, trial.replies, strict=False)):
        pairs = pair_calls(turn.expected.tool_calls, reply.tool_calls, found_in_calls(trial, index))
        for pair in pairs:
            if pair.fit in WRONG:
                return {"turn": index + 1, "kind": f"call {pair.fit}", **_sides(pair)}
    if trial.reason and not trial.is_answered:
        return {"turn": len(trial.replies) + 1, "kind": "no answer", "expected": None, "got": trial.reason[:TEXT]}
    score = decisive(trial.scores)
    if score is None:
        return None
    index = len(trial.replies) - 1 if score.turn is None else score.turn
    if not 0 <= index < len(trial.replies):
        return None
    expected = "\n".join(expected_lines(trial.case.turns[index].expected, TEXT)) or None
    got = answer(trial.replies[index])[:TEXT]
    return {"turn": index + 1, "kind": f"score of {score.evaluator}", "expected": expected, "got": got}


def _sides(pair: CallPair) -> dict[str, Json]:
    wanted = pair.wanted if pair.expected is None else expected_call_text(pair.expected, TEXT)
    return {"expected": wanted or None, "got": None if pair.call is None else call_text(pair.call, TEXT)}
