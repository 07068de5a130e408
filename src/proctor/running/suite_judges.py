"""The judges of a suite: the places that can name one, and the problems of the ones that are named.

`judging.choosing` decides who judges. The plan calls it once per evaluator, with the sources of its suite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from proctor.base.environment import variables_in
from proctor.base.errors import Problem, UsageError
from proctor.base.masking import mask
from proctor.base.positions import Position
from proctor.cases.suite import Suite
from proctor.evaluators.registry import ResolvedEvaluator
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
    """Everything that can name a judge for the evaluators of a suite."""
    of_suite = None
    if suite is not None and suite.judge is not None:
        of_suite = WrittenJudge(suite.judge, SUITE, suite.key_positions.get("judge"))
    return JudgeSources(
        command_line=None if options.judge is None else WrittenJudge(options.judge, COMMAND_LINE),
        suite=of_suite,
        configuration=None if options.default_judge is None else WrittenJudge(options.default_judge, CONFIGURATION),
        environment=environment_sources().environment,
        skip_models=options.fast,
    )


def position_of(suite: Suite, key: str, value: Any, reason: str) -> Position | None:
    """The position of a wrong value: of the string with the variable that `reason` names, else of the key."""
    variables = variables_in(reason)
    keys = _keys_containing(value, f"${{{variables[0]}}}", key) if variables else ()
    positions = (suite.key_positions.get(name) for name in (*keys, key))
    return next((position for position in positions if position is not None), None)


def _keys_containing(value: Any, text: str, key: str) -> Iterator[str]:
    """The keys of strings that contain `text`, as people write them: `agent.headers[0]`."""
    if isinstance(value, str) and text in value:
        yield key
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from _keys_containing(item, text, f"{key}.{name}")
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _keys_containing(item, text, f"{key}[{index}]")


def judge_names(evaluators: Iterable[ResolvedEvaluator]) -> str:
    """The names of the judges that will be used, as text."""
    choices = [
        evaluator.judge for evaluator in evaluators if evaluator.judge is not None and not evaluator.judge.is_skipped
    ]
    return mask(" and ".join(dict.fromkeys(_panel_name(choice) for choice in choices)))


def _panel_name(choice: JudgeChoice) -> str:
    panel = choice.panel
    return panel.members[0].name if len(panel.members) == 1 else f"a {panel.mode}"


def judge_problems(
    suite: Suite,
    evaluators: Sequence[ResolvedEvaluator],
    sources: JudgeSources,
    positions: Callable[[ResolvedEvaluator], Iterable[Position | None]],
) -> list[Problem]:
    """Problems of the judges that are named: one is not valid, or a package or API key is missing.

    `positions` returns every position at which an evaluator is named.
    """
    problems: list[Problem] = []
    if not sources.skip_models and (sources.command_line is not None or sources.suite is not None):
        try:
            choose_judge(sources)  # report a mistake in it even if no evaluator uses a judge
        except InvalidJudge as error:
            problems.append(invalid_judge_problem(error, suite))
    for evaluator in evaluators:
        if evaluator.judge is None or evaluator.judge.is_skipped or not (reason := why_unavailable(evaluator.judge)):
            continue
        if evaluator.judge.origin == EVALUATOR:
            place = f"evaluator {evaluator.title!r}: model:"
            problems += [Problem.at(position, reason, place, path=suite.path) for position in positions(evaluator)]
        else:
            problems.append(_problem(reason, evaluator.judge.written, suite))
    return list(dict.fromkeys(problems))


def invalid_judge_problem(error: InvalidJudge, suite: Suite) -> Problem:
    """The problem of an invalid judge that is named by the suite or the caller, not by an evaluator."""
    return _problem(str(error), error.written, suite)


def _problem(reason: str, written: WrittenJudge, suite: Suite) -> Problem:
    where = f"{COMMAND_LINE}:" if written.origin == COMMAND_LINE else "judge:"
    if written.origin != SUITE:
        return Problem(reason, where=where)
    return Problem.at(position_of(suite, "judge", written.judge, reason), reason, where, path=suite.path)


def why_unavailable(choice: JudgeChoice) -> str:
    """Why a judge cannot be used, as far as is known without calling it; empty if it can."""
    try:
        Judges().panel(choice.panel)
    except UsageError as error:
        return str(error)
    return ""


def judge_session_for(judges: Judges, evaluator: ResolvedEvaluator) -> JudgeSession:
    """The session in which the engine calls an evaluator."""
    return JudgeSession(judges, evaluator.sources, evaluator.judge, evaluator.threshold)
