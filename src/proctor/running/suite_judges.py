"""The judges of a suite: where they may be named, and what is wrong with those that are named.

`judging.choosing` decides who judges. The plan calls it once for each evaluator, with the sources of its suite.
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
    """Every place that may name a judge for the evaluators of a suite."""
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
    """Where a suite says something that is wrong: the text with the variable that a reason names, else the key."""
    variables = variables_in(reason)
    places = _keys_containing(value, f"${{{variables[0]}}}", key) if variables else ()
    found = (suite.key_positions.get(place) for place in (*places, key))
    return next((position for position in found if position is not None), None)


def _keys_containing(value: Any, text: str, place: str) -> Iterator[str]:
    """The places in data, as people write them, of texts that hold some text."""
    if isinstance(value, str) and text in value:
        yield place
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from _keys_containing(item, text, f"{place}.{name}")
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _keys_containing(item, text, f"{place}[{index}]")


def judge_names(evaluators: Iterable[ResolvedEvaluator]) -> str:
    """Who is going to judge, for a person to read."""
    choices = [bound.judge for bound in evaluators if bound.judge is not None and not bound.judge.is_skipped]
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
    """Judges that are named and cannot be had: one that is not valid, a package or a key that is missing.

    `positions` says where an evaluator is named, which may be in many places.
    """
    problems: list[Problem] = []
    if not sources.skip_models and (sources.command_line is not None or sources.suite is not None):
        try:
            choose_judge(sources)  # named, so that a mistake in it is reported even if no evaluator asks
        except InvalidJudge as error:
            problems.append(invalid_judge_problem(error, suite))
    for bound in evaluators:
        if bound.judge is None or bound.judge.is_skipped or not (reason := why_unavailable(bound.judge)):
            continue
        if bound.judge.origin == EVALUATOR:
            place = f"evaluator {bound.title!r}: model:"
            problems += [Problem.at(position, reason, place, path=suite.path) for position in positions(bound)]
        else:
            problems.append(_problem(reason, bound.judge.written, suite))
    return list(dict.fromkeys(problems))


def invalid_judge_problem(error: InvalidJudge, suite: Suite) -> Problem:
    """The problem of a judge that is not valid, and that no evaluator names itself."""
    return _problem(str(error), error.written, suite)


def _problem(reason: str, written: WrittenJudge, suite: Suite) -> Problem:
    where = f"{COMMAND_LINE}:" if written.origin == COMMAND_LINE else "judge:"
    if written.origin != SUITE:
        return Problem(reason, where=where)
    return Problem.at(position_of(suite, "judge", written.judge, reason), reason, where, path=suite.path)


def why_unavailable(choice: JudgeChoice) -> str:
    """Why a judge cannot be had, as far as that shows without a call; an empty string if it can."""
    try:
        Judges().panel(choice.panel)
    except UsageError as error:
        return str(error)
    return ""


def judge_session_for(judges: Judges, bound: ResolvedEvaluator) -> JudgeSession:
    """What holds while the engine calls an evaluator."""
    return JudgeSession(judges, bound.sources, bound.judge, bound.threshold)
