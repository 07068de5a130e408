"""ADK's `AgentEvaluator` for any agent that Proctor can test: an object, a callable, a module, `module:name` or a URL.

All files run before anything is raised. The one error lists every failure of every file.
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
from proctor.base.open_checks import record_open_check
from proctor.base.source import read_text
from proctor.cases.suite import Settings, Suite
from proctor.cases.threshold import passes
from proctor.compat.adk.criteria import METRICS
from proctor.compat.adk.evaluation_inputs import find_agent, read_eval_set, read_files, with_app_name
from proctor.compat.adk.keys import CONFIG_NAME, NAME
from proctor.compat.adk.migration import SPELLINGS, eval_set_text
from proctor.compat.adk.test_config import ADK_PYTHON, DEFAULT_CRITERIA, read_config
from proctor.reporting.explain import FULL, as_text, explain, shorten
from proctor.reporting.tables import append
from proctor.reporting.terminal.screen import escape_control, escape_unencodable
from proctor.results.open_results import open_check_of
from proctor.results.run import Run
from proctor.results.score import Outcome, Score
from proctor.results.suite_info import SuiteInfo
from proctor.results.trial import Trial
from proctor.results.verdict import RunVerdict
from proctor.running.run import RunRequest, raise_if_stopped, run_suites_async
from proctor.running.settings import RunOptions

NUM_RUNS = 2
"""ADK's default number of runs per case."""

__all__ = ["DEFAULT_CRITERIA", "NUM_RUNS", "AgentEvaluationFailed", "AgentEvaluator"]


@dataclass(frozen=True, slots=True)
class _Options:
    """The options that all evaluation methods share."""

    num_runs: int = NUM_RUNS
    agent_name: str | None = None
    print_detailed_results: bool = False
    output_file: str | Path | None = None
    app_name: str | None = None
    """The application name of sessions, for cases that do not name one."""
    judge: Any = None
    store: str | Path | None = None
    parallel: int | None = None
    timeout: float | None = None


class AgentEvaluator:
    """Runs EvalSets against an agent and raises if a metric is below its threshold.

    The methods are coroutines, as in ADK. The variants with `_sync` in their name are for code without an event loop.
    They take four parameters that ADK does not have: `judge` (the judge model), `store` (the folder to store the run
    in), `parallel` (how many conversations run in parallel) and `timeout` (seconds per conversation).
    """

    @staticmethod
    async def evaluate(
        agent: Any = None,
        eval_dataset_file_path_or_dir: str | Path = "",
        num_runs: int = NUM_RUNS,
        *,
        agent_module: Any = None,
        initial_session_file: str | Path | None = None,
        config_file: str | Path | None = None,
        **options: Any,
    ) -> Run:
        """Run every case of a file, or of all `*.test.json` files below a folder, `num_runs` times.

        Each metric's mean over runs and turns is compared with its threshold. `agent_name` selects a sub-agent,
        `output_file` gets one CSV row per score, and `print_detailed_results` prints every conversation next to the
        expected one. `config_file` names a `test_config.json` that is not next to the files.
        """
        __tracebackhide__ = True
        parameters = _snake_case(options)
        config = parameters.pop("config_file", config_file)
        path = parameters.pop("eval_dataset_file_path_or_dir", eval_dataset_file_path_or_dir)
        session = parameters.pop("initial_session_file", initial_session_file)
        settings, target = _options(parameters.pop("num_runs", num_runs), parameters), _one_agent(agent, agent_module)
        return await _evaluate(read_files(path, session, config), target, settings)

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
        """Run an EvalSet in memory: a mapping in either spelling, or an object of ADK's class.

        `criteria` is the `criteria` object of a `test_config.json`, `eval_config` a whole one. Without either, ADK's
        defaults apply. No file is read.
        """
        __tracebackhide__ = True
        parameters = {"print_detailed_results": print_detailed_results, **_snake_case(options)}
        eval_set, eval_config = parameters.pop("eval_set", eval_set), parameters.pop("eval_config", eval_config)
        settings = _options(parameters.pop("num_runs", num_runs), parameters)
        suite = read_eval_set(eval_set, criteria, eval_config)
        return await _evaluate([suite], _one_agent(agent, agent_module), settings)

    @staticmethod
    async def find_config_for_test_file(test_file: str | Path) -> dict[str, Json]:
        """The criteria for a file: those of the `test_config.json` next to it, or ADK's defaults without one.

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
        to: str = ADK_PYTHON,
        **options: Any,
    ) -> None:
        """Convert a file in the legacy array format to an EvalSet.

        `to="adk-python"` writes the snake_case keys that adk-python needs, `to="adk"` the camelCase keys of ADK for
        TypeScript, as `migrateEvalDataToNewSchema` does.
        """
        if to not in SPELLINGS:
            raise UsageError(f"to must be 'adk' or 'adk-python', not {to!r}")
        parameters = _snake_case(options)
        old_eval_data_file = parameters.pop("old_eval_data_file", old_eval_data_file)
        new_eval_data_file = parameters.pop("new_eval_data_file", new_eval_data_file)
        initial_session_file = parameters.pop("initial_session_file", initial_session_file)
        if parameters:
            raise TypeError(f"migrate_eval_data_to_new_schema has no parameter {next(iter(parameters))!r}")
        if not str(old_eval_data_file) or not str(new_eval_data_file):
            raise UsageError("pass both old_eval_data_file and new_eval_data_file")
        suites = read_files(old_eval_data_file, initial_session_file, announce=False)
        target = Path(new_eval_data_file)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(eval_set_text(suites, to), encoding="utf-8")

    evaluate_sync = staticmethod(sync_version(evaluate, __name__))
    evaluate_eval_set_sync = staticmethod(sync_version(evaluate_eval_set, __name__))
    find_config_for_test_file_sync = staticmethod(sync_version(find_config_for_test_file, __name__))
    migrate_eval_data_to_new_schema_sync = staticmethod(sync_version(migrate_eval_data_to_new_schema, __name__))

    evaluateEvalSet = evaluate_eval_set  # noqa: N815  ADK-TS's spelling
    findConfigForTestFile = find_config_for_test_file  # noqa: N815

    @staticmethod
    async def migrateEvalDataToNewSchema(*arguments: Any, to: str = NAME, **options: Any) -> None:  # noqa: N802
        """Like `migrate_eval_data_to_new_schema`, but write what ADK for TypeScript reads."""
        await AgentEvaluator.migrate_eval_data_to_new_schema(*arguments, to=to, **options)


def _options(num_runs: Any, parameters: Mapping[str, Any]) -> _Options:
    """Check the parameters and return them as options."""
    names = {item.name for item in fields(_Options)} - {"num_runs"}
    if unsupported := next(
        (name for name in parameters if name in UNSUPPORTED_PARAMETERS and parameters[name] is not None), None
    ):
        raise TypeError(f"AgentEvaluator does not support {unsupported}: {UNSUPPORTED_PARAMETERS[unsupported]}")
    parameters = {name: value for name, value in parameters.items() if name not in UNSUPPORTED_PARAMETERS}
    if unknown := [name for name in parameters if name not in names]:
        raise TypeError(f"AgentEvaluator has no parameter {unknown[0]!r}; it has {', '.join(sorted(names))}")
    if isinstance(num_runs, bool) or not isinstance(num_runs, int) or num_runs < 1:
        raise UsageError(f"num_runs must be a whole number, 1 or more, not {num_runs!r:.80}")
    return _Options(num_runs, **parameters)


UNSUPPORTED_PARAMETERS = {
    "artifact_service": "each conversation gets its own in memory; pass the agent as an App or Runner that uses yours",
    "eval_set_results_manager": "store results with store=, and read them with `proctor show`",
}
"""adk-python's parameters that are not supported, with what to do instead."""


def _snake_case(options: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters spelled as in ADK-TS, under adk-python's names."""
    return {re.sub(r"[A-Z]", lambda upper: f"_{upper[0].lower()}", name): value for name, value in options.items()}


def _one_agent(agent: Any, agent_module: Any) -> Any:
    """The agent from either parameter; adk-python calls it `agent_module`."""
    if (agent is None) == (agent_module is None):
        raise UsageError("pass the agent to evaluate as either agent or agent_module")
    return agent_module if agent is None else agent


async def _evaluate(suites: list[Suite], agent: Any, options: _Options) -> Run:
    """Run the suites and raise `AgentEvaluationFailed` unless they pass.

    If the run is inconclusive, a test of pytest goes on and is pending at its end.
    """
    __tracebackhide__ = True  # the message says what failed; our stack frames do not
    if options.app_name is not None:
        suites = [with_app_name(suite, options.app_name) for suite in suites]
    async with AsyncExitStack() as cleanup:
        request = RunRequest(
            suites,
            RunOptions(
                overrides=Settings(repeat=options.num_runs, parallel=options.parallel, timeout=options.timeout),
                judge=options.judge,
            ),
            agent=await find_agent(agent, options.agent_name, cleanup),
            store=None if options.store is None else Path(options.store),
        )
        run, verdict = await run_suites_async(request)
    raise_if_stopped(run)
    if options.print_detailed_results:
        print_conversations(run)
    if options.output_file is not None:
        append(run, Path(options.output_file))
    for message in skipped_criteria(run):
        warnings.warn(message, UserWarning, stacklevel=3)
    if verdict.outcome is not Outcome.PASSED:
        failure = AgentEvaluationFailed(list_failures(run, verdict), run)
        if not run.is_inconclusive or not record_open_check(open_check_of(run.trials, str(failure))):
            raise failure
    return run


MAX_REASON = 300
"""The maximum number of characters of a reason."""
MAX_PLACES = 5
"""The maximum number of runs and turns listed per metric."""


@dataclass(frozen=True, slots=True)
class CriterionFailure:
    """One reason why an evaluation did not pass."""

    file: str
    eval_id: str
    metric: str
    """Empty if the agent gave no answer."""
    threshold: float | None
    score: float | None
    """The mean over runs and turns on the metric's own scale, or None if nothing was measured."""
    places: tuple[str, ...]
    """Where it failed and why, e.g. `run 2, turn 1 (0.0): expected get_weather(...)`."""
    measured: bool = True
    """True if the agent failed; False if an error left the result unknown."""

    def __str__(self) -> str:
        where = f"{self.file}: {self.eval_id}"
        if not self.metric:
            return "\n    ".join([where, *self.places])
        if not self.measured:
            head = f"{where}: {self.metric} could not be measured"
        else:
            head = f"{where}: {self.metric} is {self.score:.4g}, below {self.threshold:g}"
        return "\n    ".join([head, *self.places])


class AgentEvaluationFailed(AssertionError):
    """An agent did not meet its criteria, or an error left that unknown.

    `failures` lists the criteria that were not met, `errors` those that could not be measured, and `run` is the whole
    run.
    """

    def __init__(self, failures: Sequence[CriterionFailure], run: Run) -> None:
        self.failures = [failure for failure in failures if failure.measured]
        self.errors = [failure for failure in failures if not failure.measured]
        """What could not be measured because something other than the agent broke."""
        self.run = run
        super().__init__(escape_control("\n".join(_message_lines(self.failures, self.errors))))


def _message_lines(failures: Sequence[CriterionFailure], errors: Sequence[CriterionFailure]) -> Iterator[str]:
    """The lines of the error message."""
    if failures:
        yield f"{len(failures)} criteria were not met:" if len(failures) > 1 else "1 criterion was not met:"
        yield from (f"  {failure}" for failure in failures)
    if errors:
        yield f"{len(errors)} could not be measured (errors, not failures of the agent):"
        yield from (f"  {error}" for error in errors)


def list_failures(run: Run, verdict: RunVerdict) -> list[CriterionFailure]:
    """Everything that kept a run from passing, case by case in file order."""
    infos = {info.name: info for info in run.suites}
    open_cases = {
        (suite.name, case.case_id)
        for suite in verdict.suites
        for case in suite.cases
        if case.outcome is not Outcome.PASSED
    }
    trials: dict[tuple[str, str], list[Trial]] = {}
    for trial in run.trials:
        if (trial.suite, trial.case.id) in open_cases:
            trials.setdefault((trial.suite, trial.case.id), []).append(trial)
    failures = [failure for (suite, _), group in trials.items() for failure in _failures(infos[suite], group)]
    if failures:
        return failures
    return [
        CriterionFailure(_file(info), "all cases", "", None, None, (verdict.reason,), False) for info in run.suites[:1]
    ]


def skipped_criteria(run: Run) -> Iterator[str]:
    """A message for each criterion that had nothing to compare in any run or turn of a case."""
    scores_by_metric: dict[tuple[str, str, str], list[Score]] = {}
    for trial in run.trials:
        for score in trial.scores:
            if not score.report_only:
                scores_by_metric.setdefault((trial.suite, trial.case.id, score.evaluator), []).append(score)
    for (suite, eval_id, metric), scores in scores_by_metric.items():
        if all(score.outcome is Outcome.SKIPPED for score in scores):
            yield f"{suite}: {eval_id}: {metric} was skipped: {_one_line(scores[0].reasoning)}"


def _failures(info: SuiteInfo, trials: Sequence[Trial]) -> Iterator[CriterionFailure]:
    """The failures of one case: trials that did not finish, then metrics below their threshold."""
    file, eval_id = _file(info), trials[0].case.id
    for broken_outcome in (Outcome.FAILED, Outcome.ERROR, Outcome.SKIPPED, Outcome.PENDING):
        broken_trials = [trial for trial in trials if trial.outcome is broken_outcome and trial.end_reason]
        if broken_trials:
            reasons = [_place(trial, None, len(trials)) + trial.end_reason for trial in broken_trials]
            yield CriterionFailure(
                file,
                eval_id,
                "",
                None,
                None,
                (*reasons, *_skip_reasons(broken_trials)),
                broken_outcome is Outcome.FAILED,
            )
    metrics = dict.fromkeys(score.evaluator for trial in trials for score in trial.scores if not score.report_only)
    for metric in metrics:
        scores = [(trial, score) for trial in trials for score in trial.scores if score.evaluator == metric]
        failure = _failure(file, eval_id, metric, scores, len(trials))
        if failure is not None:
            yield failure


def _skip_reasons(trials: Sequence[Trial]) -> Iterator[str]:
    """Why each metric was skipped, once per reason, if every metric of the trials was skipped."""
    scores = [score for trial in trials for score in trial.scores if not score.report_only]
    if all(score.outcome is Outcome.SKIPPED for score in scores):
        yield from dict.fromkeys(f"{score.evaluator} was skipped: {_one_line(score.reasoning)}" for score in scores)


def _failure(
    file: str, eval_id: str, metric: str, scores: Sequence[tuple[Trial, Score]], runs: int
) -> CriterionFailure | None:
    """A metric's failure over all runs and turns, or None if it was met or had nothing to compare."""
    threshold = next((score.threshold for _, score in scores if score.threshold is not None), 0.0)
    values = [score.value for _, score in scores if score.value is not None]
    unmeasured = [pair for pair in scores if pair[1].outcome in (Outcome.ERROR, Outcome.PENDING)]
    mean = math.fsum(values) / len(values) if values else None
    best = (math.fsum(values) + len(unmeasured)) / max(1, len(values) + len(unmeasured))
    if unmeasured and passes(best, threshold):
        return CriterionFailure(
            file, eval_id, metric, _on_adk_scale(metric, threshold), None, _places(unmeasured, runs), False
        )
    if mean is None or passes(mean, threshold):
        return None
    failing = [pair for pair in scores if pair[1].value is not None and not passes(pair[1].value, threshold)]
    return CriterionFailure(
        file,
        eval_id,
        metric,
        _on_adk_scale(metric, threshold),
        _on_adk_scale(metric, mean),
        _places(failing, runs, metric),
    )


def _on_adk_scale(metric: str, share: float) -> float:
    """A score from 0 to 1, converted to the scale that the metric has in ADK."""
    adk_metric = METRICS.get(metric)
    return (
        share
        if adk_metric is None
        else round(adk_metric.minimum + share * (adk_metric.maximum - adk_metric.minimum), 10)
    )


def _places(scores: Sequence[tuple[Trial, Score]], runs: int, metric: str = "") -> tuple[str, ...]:
    """A line per score with its run, turn, value and reason."""
    lines = []
    for trial, score in scores[:MAX_PLACES]:
        value = "" if score.value is None else f"({_on_adk_scale(metric, score.value):.4g}) "
        lines.append(f"{_place(trial, score.turn, runs)}{value}{_one_line(score.reasoning)}".strip())
    more = len(scores) - len(lines)
    return (*lines, f"and {more} more") if more > 0 else tuple(lines)


def _one_line(reasoning: str) -> str:
    return " ".join(shorten(reasoning, MAX_REASON).split())


def _place(trial: Trial, turn: int | None, runs: int) -> str:
    places = [f"run {trial.number}"] if runs > 1 else []
    places += [] if turn is None else [f"turn {turn + 1}"]
    return f"{', '.join(places)}: " if places else ""


def _file(info: SuiteInfo) -> str:
    return info.path or info.name


def print_conversations(run: Run) -> None:
    """Print every conversation next to the expected one, tool call by tool call."""
    for trial in run.trials:
        repeated = f" (run {trial.number})" if trial.number > 1 else ""
        text = as_text(explain(trial, FULL))
        lines = [f"{trial.outcome.value}  {trial.suite} / {trial.case.id}{repeated}"]
        lines += [f"    {line}" for line in text.split("\n")]
        sys.stdout.write(escape_unencodable(escape_control("\n".join(lines)), sys.stdout.encoding) + "\n\n")
