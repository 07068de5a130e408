"""The one error of an evaluation: every metric that failed, where and why, and separately what was not measured."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence

from proctor.base.records import record
from proctor.cases.formats.adk.criteria import METRICS
from proctor.cases.suite import passes
from proctor.reporting.explain import FULL, as_text, explain, shorten
from proctor.reporting.terminal.screen import encodable, visible
from proctor.results.run import Outcome, Run, Score, SuiteInfo, TrialResult
from proctor.results.verdict import RunVerdict

REASON = 300
"""The most characters of one reason."""
LOST = 5
"""The most runs and turns that are listed one by one for a metric."""


@record
class Failure:
    """One thing that kept an evaluation from passing."""

    file: str
    eval_id: str
    metric: str
    """Empty where the agent gave no answer at all."""
    threshold: float | None
    score: float | None
    """The mean over runs and turns, on the metric's own scale; `None` where nothing was measured."""
    lost: tuple[str, ...]
    """Each place that lost it, and why: `run 2, turn 1 (0.0): expected get_weather(...)`."""
    measured: bool = True
    """Whether it is the agent that failed, or nothing is known because something else broke."""

    def __str__(self) -> str:
        where = f"{self.file}: {self.eval_id}"
        if not self.metric:
            return "\n    ".join([where, *self.lost])
        if not self.measured:
            head = f"{where}: {self.metric} could not be measured"
        else:
            head = f"{where}: {self.metric} is {self.score:.4g}, below {self.threshold:g}"
        return "\n    ".join([head, *self.lost])


class AgentEvaluationFailed(AssertionError):
    """An agent did not meet its criteria, or that could not be found out; `failures` has each, `run` everything."""

    def __init__(self, failures: Sequence[Failure], run: Run) -> None:
        self.failures = [failure for failure in failures if failure.measured]
        self.errors = [failure for failure in failures if not failure.measured]
        """What was not measured, through no fault of the agent as far as is known."""
        self.run = run
        super().__init__(visible("\n".join(_message_lines(self.failures, self.errors))))


def _message_lines(failures: Sequence[Failure], errors: Sequence[Failure]) -> Iterator[str]:
    if failures:
        yield f"{len(failures)} of the criteria were not met:" if len(failures) > 1 else "a criterion was not met:"
        yield from (f"  {failure}" for failure in failures)
    if errors:
        yield f"{len(errors)} could not be measured, which says nothing about the agent:"
        yield from (f"  {error}" for error in errors)


def failures_of(run: Run, verdict: RunVerdict) -> list[Failure]:
    """Everything that kept a run from passing, case by case in the order of its files."""
    infos = {info.name: info for info in run.suites}
    open_cases = {
        (suite.name, case.case_id)
        for suite in verdict.suites
        for case in suite.cases
        if case.outcome is not Outcome.PASSED
    }
    trials: dict[tuple[str, str], list[TrialResult]] = {}
    for trial in run.trials:
        if (trial.suite, trial.case.id) in open_cases:
            trials.setdefault((trial.suite, trial.case.id), []).append(trial)
    found = [failure for (suite, _), group in trials.items() for failure in _failures(infos[suite], group)]
    if found:
        return found
    return [Failure(_file(info), "all cases", "", None, None, (verdict.reason,), False) for info in run.suites[:1]]


def unmeasured_criteria(run: Run) -> Iterator[str]:
    """Each criterion that is in force for a case and found nothing to compare there, in any run or turn."""
    seen: dict[tuple[str, str, str], list[Score]] = {}
    for trial in run.trials:
        for score in trial.scores:
            if score.gates:
                seen.setdefault((trial.suite, trial.case.id, score.evaluator), []).append(score)
    for (suite, eval_id, metric), scores in seen.items():
        if all(score.outcome is Outcome.SKIPPED for score in scores):
            yield f"{suite}: {eval_id}: {metric} was not measured: {_one_line(scores[0].reasoning)}"


def _failures(info: SuiteInfo, trials: Sequence[TrialResult]) -> Iterator[Failure]:
    file, eval_id = _file(info), trials[0].case.id
    for broken in (Outcome.FAILED, Outcome.ERROR, Outcome.SKIPPED, Outcome.PENDING):
        ended = [trial for trial in trials if trial.outcome is broken and trial.reason]
        if ended:
            reasons = [_at(trial, None, len(trials)) + trial.reason for trial in ended]
            yield Failure(file, eval_id, "", None, None, (*reasons, *_skips(ended)), broken is Outcome.FAILED)
    metrics = dict.fromkeys(score.evaluator for trial in trials for score in trial.scores if score.gates)
    for metric in metrics:
        scores = [(trial, score) for trial in trials for score in trial.scores if score.evaluator == metric]
        failure = _failure(file, eval_id, metric, scores, len(trials))
        if failure is not None:
            yield failure


def _skips(trials: Sequence[TrialResult]) -> Iterator[str]:
    """Why each metric was skipped, where that is all there is to say; the same for other turns and runs is not."""
    scores = [score for trial in trials for score in trial.scores if score.gates]
    if all(score.outcome is Outcome.SKIPPED for score in scores):
        yield from dict.fromkeys(f"{score.evaluator} was skipped: {_one_line(score.reasoning)}" for score in scores)


def _failure(
    file: str, eval_id: str, metric: str, scores: Sequence[tuple[TrialResult, Score]], runs: int
) -> Failure | None:
    """What a metric comes to over all runs and turns; `None` if it is met, or had nothing to compare."""
    threshold = next((score.threshold for _, score in scores if score.threshold is not None), 0.0)
    values = [score.value for _, score in scores if score.value is not None]
    unmeasured = [pair for pair in scores if pair[1].outcome in (Outcome.ERROR, Outcome.PENDING)]
    mean = math.fsum(values) / len(values) if values else None
    best = (math.fsum(values) + len(unmeasured)) / max(1, len(values) + len(unmeasured))
    if unmeasured and passes(best, threshold):
        return Failure(file, eval_id, metric, _on_adk_scale(metric, threshold), None, _places(unmeasured, runs), False)
    if mean is None or passes(mean, threshold):
        return None
    lost = [pair for pair in scores if pair[1].value is not None and not passes(pair[1].value, threshold)]
    return Failure(
        file,
        eval_id,
        metric,
        _on_adk_scale(metric, threshold),
        _on_adk_scale(metric, mean),
        _places(lost, runs, metric),
    )


def _on_adk_scale(metric: str, share: float) -> float:
    """A score on the scale that its metric has in ADK."""
    known = METRICS.get(metric)
    return share if known is None else round(known.least + share * (known.most - known.least), 10)


def _places(scores: Sequence[tuple[TrialResult, Score]], runs: int, metric: str = "") -> tuple[str, ...]:
    shown = []
    for trial, score in scores[:LOST]:
        value = "" if score.value is None else f"({_on_adk_scale(metric, score.value):.4g}) "
        shown.append(f"{_at(trial, score.turn, runs)}{value}{_one_line(score.reasoning)}".strip())
    more = len(scores) - len(shown)
    return (*shown, f"and {more} more") if more > 0 else tuple(shown)


def _one_line(reasoning: str) -> str:
    return " ".join(shorten(reasoning, REASON).split())


def _at(trial: TrialResult, turn: int | None, runs: int) -> str:
    places = [f"run {trial.number}"] if runs > 1 else []
    places += [] if turn is None else [f"turn {turn + 1}"]
    return f"{', '.join(places)}: " if places else ""


def _file(info: SuiteInfo) -> str:
    return info.path or info.name


def print_conversations(run: Run) -> None:
    """Every conversation with what was expected beside it, tool call by tool call."""
    for trial in run.trials:
        repeated = f" (run {trial.number})" if trial.number > 1 else ""
        text = as_text(explain(trial, FULL))
        lines = [f"{trial.outcome.value}  {trial.suite} / {trial.case.id}{repeated}"]
        lines += [f"    {line}" for line in text.split("\n")]
        sys.stdout.write(encodable(visible("\n".join(lines)), sys.stdout.encoding) + "\n\n")
