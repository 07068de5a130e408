"""The judges of a suite: where they may be named, and what is wrong with those that are named.

`judging.choosing` decides who judges. The plan calls it once for each evaluator, with the sources of its suite.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from proctor.base.environment import variables_in
from proctor.base.errors import Problem, UsageError
from proctor.base.masking import mask
from proctor.cases.suite import Suite
from proctor.evaluators.registry import Bound
from proctor.judging.choosing import (
    COMMAND_LINE,
    CONFIGURATION,
    EVALUATOR,
    SUITE,
    InvalidJudge,
    JudgeChoice,
    JudgeSources,
    WrittenJudge,
    choose_judge,
    environment_sources,
)
from proctor.judging.judges import Judges
from proctor.judging.session import JudgeSession
from proctor.running.settings import RunOptions


def judge_sources(options: RunOptions, suite: Suite | None = None) -> JudgeSources:
    """Every place that may name a judge for the evaluators of a suite."""
    of_suite = None if suite is None or suite.judge is None else WrittenJudge(suite.judge, SUITE, suite.path)
    return JudgeSources(
        command_line=None if options.judge is None else WrittenJudge(options.judge, COMMAND_LINE),
        suite=of_suite,
        configuration=None if options.usual_judge is None else WrittenJudge(options.usual_judge, CONFIGURATION),
        environment=environment_sources().environment,
        leave_out_models=options.fast,
    )


def line_with(path: Path | None, text: str) -> int | None:
    """The first line of a file that mentions something, so that a problem found late still points into the file."""
    if path is None or not text or not path.is_file():
        return None
    content = path.read_text(encoding="utf-8", errors="replace")
    at = content.find(text)
    return content.count("\n", 0, at) + 1 if at >= 0 else None


def line_of_complaint(path: Path | None, text: str, reason: str) -> int | None:
    """The line of the variable that a reason complains of, nearest to what `text` names; else the line of `text`."""
    named = line_with(path, text)
    variables = variables_in(reason)
    if path is None or not variables or not path.is_file():
        return named
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    found = [number for number, line in enumerate(lines, 1) if f"${{{variables[0]}}}" in line]
    return min(found, key=lambda number: abs(number - (named or 0)), default=named)


def judge_names(evaluators: Iterable[Bound]) -> str:
    """Who is going to judge, for a person to read."""
    choices = [bound.judge for bound in evaluators if bound.judge is not None and not bound.judge.left_out]
    return mask(" and ".join(dict.fromkeys(_panel_name(choice) for choice in choices)))


def _panel_name(choice: JudgeChoice) -> str:
    panel = choice.panel
    return panel.members[0].name if len(panel.members) == 1 else f"a {panel.mode}"


def judge_problems(suite: Suite, evaluators: Sequence[Bound], sources: JudgeSources) -> list[Problem]:
    """Judges that are named and cannot be had: one that is not valid, a package or a key that is missing."""
    problems: list[Problem] = []
    if not sources.leave_out_models and (sources.command_line is not None or sources.suite is not None):
        try:
            choose_judge(sources)  # named, so that a mistake in it is reported even if no evaluator asks
        except InvalidJudge as error:
            problems.append(invalid_judge(error, suite))
    for bound in evaluators:
        if bound.judge is None or bound.judge.left_out:
            continue
        if reason := unavailable(bound.judge):
            problems.append(_problem(reason, bound.judge.written, suite, f"evaluator {bound.title!r}: model:"))
    return list(dict.fromkeys(problems))


def invalid_judge(error: InvalidJudge, suite: Suite, title: str = "") -> Problem:
    """The problem of a judge that is not valid; `title` is the evaluator that names it, or that asks it."""
    if error.key == "model":
        return _problem(str(error), error.written, suite, f"evaluator {title!r}: model:")
    return Problem(str(error), suite.path, line_with(suite.path, error.key), f"evaluator {title!r}:")


def _problem(reason: str, written: WrittenJudge, suite: Suite, of_evaluator: str) -> Problem:
    if written.origin == EVALUATOR:
        return Problem(reason, suite.path, line_of_complaint(suite.path, _as_written(written), reason), of_evaluator)
    where = f"{COMMAND_LINE}:" if written.origin == COMMAND_LINE else "judge:"
    return Problem(reason, written.at, line_of_complaint(written.at, _as_written(written), reason), where)


def _as_written(written: WrittenJudge) -> str:
    """What to look for in the file that names a judge."""
    judge = written.judge
    if isinstance(judge, Mapping):
        return str(judge.get("name") or judge.get("model") or "judge")
    return judge if isinstance(judge, str) else ""


def unavailable(choice: JudgeChoice) -> str:
    """Why a judge cannot be had, as far as that shows without a call; an empty string if it can."""
    try:
        Judges().panel(choice.panel)
    except UsageError as error:
        return str(error)
    return ""


def session_for(judges: Judges, bound: Bound) -> JudgeSession:
    """What holds while the engine calls an evaluator."""
    return JudgeSession(judges, bound.sources, bound.judge, bound.threshold)
