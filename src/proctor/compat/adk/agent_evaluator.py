"""ADK's `AgentEvaluator` for any agent Proctor can drive: instances, callables, modules, `module:name`, addresses.

Every file is run before anything is raised, and the one error lists every failure of every file.
"""

from __future__ import annotations

import math
import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from proctor.base.documents import Document
from proctor.base.errors import UsageError
from proctor.base.event_loops import sync_version
from proctor.base.json_data import Json
from proctor.base.source import read_text
from proctor.cases.suite import Settings, Suite
from proctor.cases.threshold import passes
from proctor.compat.adk.criteria import METRICS
from proctor.compat.adk.evaluation_inputs import agent_of, read_eval_set, read_files, with_app_name
from proctor.compat.adk.keys import CONFIG_NAME, NAME
from proctor.compat.adk.migration import SPELLINGS, eval_set_text
from proctor.compat.adk.test_config import DEFAULT_CRITERIA, read_config
from proctor.reporting.explain import FULL, as_text, explain, shorten
from proctor.reporting.tables import append
from proctor.reporting.terminal.screen import escape_control, escape_unencodable
from proctor.results.run import Outcome, Run, Score, SuiteInfo, TrialResult
from proctor.results.verdict import RunVerdict
from proctor.running.run import RunRequest, run_suites_async
from proctor.running.settings import RunOptions

NUM_RUNS = 2

__all__ = ["DEFAULT_CRITERIA", "NUM_RUNS", "AgentEvaluationFailed", "AgentEvaluator"]


@dataclass(frozen=True, slots=True)
class _Options:
    """The parameters of an evaluation that all methods take."""

    num_runs: int = NUM_RUNS
    agent_name: str | None = None
    print_detailed_results: bool = False
    output_file: str | Path | None = None
    app_name: str | None = None
    """The name of the application in sessions for which a case names none."""
    judge: Any = None
    store: str | Path | None = None
    parallel: int | None = None
    timeout: float | None = None


class AgentEvaluator:
    """Runs EvalSets against an agent and raises if a metric stays below its threshold.

    The methods are coroutines, as ADK documents them; those whose name ends in `_sync` are for code without a loop.
    Beyond ADK's parameters, `judge` names the judge, `store` a folder that keeps the run, `parallel` how many
    conversations are held at once, and `timeout` the seconds each may take.
    """

    @staticmethod
    async def evaluate(
        agent: Any = None,
        eval_dataset_file_path_or_dir: str | Path = "",
        num_runs: int = NUM_RUNS,
        *,
        agent_module: Any = None,
        initial_session_file: str | Path | None = None,
        **options: Any,
    ) -> Run:
        """Run every case of a file, or of all `*.test.json` under a folder, `num_runs` times each.

        A metric is held against its mean over runs and turns. `agent_name` picks a sub-agent, `output_file` gets one
        CSV row per score, and `print_detailed_results` prints every conversation with what was expected beside it.
        """
        __tracebackhide__ = True
        given = _snake_case(options)
        path = given.pop("eval_dataset_file_path_or_dir", eval_dataset_file_path_or_dir)
        session = given.pop("initial_session_file", initial_session_file)
        wanted, target = _options(given.pop("num_runs", num_runs), given), _one_of(agent, agent_module)
        return await _evaluate(read_files(path, session), target, wanted)

    @staticmethod
    async def evaluate_eval_set(
        agent: Any = None,
        eval_set: Any = None,
        criteria: Mapping[str, Json] | None = None,
        num_runs: int = NUM_RUNS,
        print_detailed_results: bool = False,
        *,
        agent_module: Any = None,
        eval_config: Any = None,
        **options: Any,
    ) -> Run:
        """The same for an EvalSet in memory: a mapping in either spelling, or an object of ADK's own class.

        `criteria` are as in a `test_config.json`, `eval_config` is the whole of one; without either, ADK's defaults
        hold. No file is read.
        """
        __tracebackhide__ = True
        given = {"print_detailed_results": print_detailed_results, **_snake_case(options)}
        eval_set, eval_config = given.pop("eval_set", eval_set), given.pop("eval_config", eval_config)
        wanted = _options(given.pop("num_runs", num_runs), given)
        suite = read_eval_set(eval_set, criteria, eval_config)
        return await _evaluate([suite], _one_of(agent, agent_module), wanted)

    @staticmethod
    async def find_config_for_test_file(test_file: str | Path) -> dict[str, Json]:
        """The criteria in force for a file: those of `test_config.json` beside it, or ADK's defaults without one.

        A config that cannot be used raises `InvalidSuite`; it is never replaced by the defaults.
        """
        path = Path(test_file).parent / CONFIG_NAME
        if not path.exists():
            return dict(DEFAULT_CRITERIA)
        config = Document(path, read_text(path))
        read_config(config)
        config.finish()
        return dict(config.data["criteria"])

    @staticmethod
    async def migrate_eval_data_to_new_schema(
        old_eval_data_file: str | Path = "",
        new_eval_data_file: str | Path = "",
        initial_session_file: str | Path | None = None,
        *,
        to: str = NAME,
        **options: Any,
    ) -> None:
        """Write a file of the older array format as an EvalSet: `to="adk-python"` in snake_case, for adk-python."""
        if to not in SPELLINGS:
            raise UsageError(f"an EvalSet is written for adk or adk-python, not for {to!r}")
        given = _snake_case(options)
        old_eval_data_file = given.pop("old_eval_data_file", old_eval_data_file)
        new_eval_data_file = given.pop("new_eval_data_file", new_eval_data_file)
        initial_session_file = given.pop("initial_session_file", initial_session_file)
        if given:
            raise TypeError(f"migrate_eval_data_to_new_schema has no parameter {next(iter(given))!r}")
        if not str(old_eval_data_file) or not str(new_eval_data_file):
            raise UsageError("name both the old file and the new one")
        suites = read_files(old_eval_data_file, initial_session_file, announce=False)
        target = Path(new_eval_data_file)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(eval_set_text(suites, to), encoding="utf-8")

    evaluate_sync = staticmethod(sync_version(evaluate, __name__))
    evaluate_eval_set_sync = staticmethod(sync_version(evaluate_eval_set, __name__))
    find_config_for_test_file_sync = staticmethod(sync_version(find_config_for_test_file, __name__))
    migrate_eval_data_to_new_schema_sync = staticmethod(sync_version(migrate_eval_data_to_new_schema, __name__))

    evaluateEvalSet = evaluate_eval_set  # noqa: N815  ADK-TS spells them so
    findConfigForTestFile = find_config_for_test_file  # noqa: N815
    migrateEvalDataToNewSchema = migrate_eval_data_to_new_schema  # noqa: N815


def _options(num_runs: Any, given: Mapping[str, Any]) -> _Options:
    known = {item.name for item in fields(_Options)} - {"num_runs"}
    if refused := next((name for name in given if name in REFUSED and given[name] is not None), None):
        raise TypeError(f"AgentEvaluator takes no {refused}: {REFUSED[refused]}")
    given = {name: value for name, value in given.items() if name not in REFUSED}
    if unknown := [name for name in given if name not in known]:
        raise TypeError(f"AgentEvaluator has no parameter {unknown[0]!r}; it has {', '.join(sorted(known))}")
    if isinstance(num_runs, bool) or not isinstance(num_runs, int) or num_runs < 1:
        raise UsageError(f"num_runs must be a whole number of at least 1, not {num_runs!r:.80}")
    return _Options(num_runs, **given)


REFUSED = {
    "artifact_service": "each conversation gets its own in memory; give the agent as an App or Runner that has yours",
    "eval_set_results_manager": "results are kept with store=, and read again with `proctor show`",
}
"""Parameters of adk-python that are not taken, and what to do instead."""


def _snake_case(options: Mapping[str, Any]) -> dict[str, Any]:
    """ADK-TS's names of the parameters as adk-python has them."""
    return {re.sub(r"[A-Z]", lambda upper: f"_{upper[0].lower()}", name): value for name, value in options.items()}


def _one_of(agent: Any, agent_module: Any) -> Any:
    """adk-python calls it `agent_module`."""
    if (agent is None) == (agent_module is None):
        raise UsageError("name the agent to evaluate, once")
    return agent_module if agent is None else agent


async def _evaluate(suites: list[Suite], agent: Any, wanted: _Options) -> Run:
    __tracebackhide__ = True  # what failed is in the message, and not in our source
    if wanted.app_name is not None:
        suites = [with_app_name(suite, wanted.app_name) for suite in suites]
    async with AsyncExitStack() as cleanup:
        request = RunRequest(
            suites,
            RunOptions(
                overrides=Settings(repeat=wanted.num_runs, parallel=wanted.parallel, timeout=wanted.timeout),
                judge=wanted.judge,
            ),
            agent=await agent_of(agent, wanted.agent_name, cleanup),
            store=None if wanted.store is None else Path(wanted.store),
        )
        run, verdict = await run_suites_async(request)
    if wanted.print_detailed_results:
        print_conversations(run)
    if wanted.output_file is not None:
        append(run, Path(wanted.output_file))
    for unmeasured in unmeasured_criteria(run):
        warnings.warn(unmeasured, UserWarning, stacklevel=3)
    if verdict.outcome != "passed":
        raise AgentEvaluationFailed(failures_of(run, verdict), run)
    return run


REASON = 300
"""The most characters of one reason."""
LOST = 5
"""The most runs and turns that are listed one by one for a metric."""


@dataclass(frozen=True, slots=True)
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
        super().__init__(escape_control("\n".join(_message_lines(self.failures, self.errors))))


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
            if not score.report_only:
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
    metrics = dict.fromkeys(score.evaluator for trial in trials for score in trial.scores if not score.report_only)
    for metric in metrics:
        scores = [(trial, score) for trial in trials for score in trial.scores if score.evaluator == metric]
        failure = _failure(file, eval_id, metric, scores, len(trials))
        if failure is not None:
            yield failure


def _skips(trials: Sequence[TrialResult]) -> Iterator[str]:
    """Why each metric was skipped, where that is all there is to say; the same for other turns and runs is not."""
    scores = [score for trial in trials for score in trial.scores if not score.report_only]
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
        sys.stdout.write(escape_unencodable(escape_control("\n".join(lines)), sys.stdout.encoding) + "\n\n")
