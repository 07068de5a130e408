"""A run: the facts about it and its trials; also `ScoreThreshold`, a rule for what passes."""

from __future__ import annotations

import enum
import io
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from proctor.base.deprecation import renamed_fields
from proctor.base.git import GitState
from proctor.base.json_data import Json
from proctor.base.open_checks import record_open_check
from proctor.cases.identity import CaseAddress
from proctor.cases.mappings import EvaluatorLike, JudgeLike
from proctor.cases.suite import Criteria, Suite
from proctor.cases.threshold import passes
from proctor.evaluators.evaluation import Evaluation
from proctor.results.case_result import CaseResult, CaseResults
from proctor.results.open_results import open_check_of
from proctor.results.score import Outcome
from proctor.results.statistics import Rate, evaluator_summaries
from proctor.results.suite_info import SuiteInfo
from proctor.results.trial import Trial, Trials, TrialSummary
from proctor.results.verdict import RunVerdict, StoredVerdict
from proctor.results.verdict import verdict as verdict_of

if TYPE_CHECKING:
    import pandas

    from proctor.results.gate_result import GateResult
    from proctor.results.judge_usage import JudgeSummary


class RunStatus(enum.StrEnum):
    """Whether a run is finished, and if not, why."""

    RUNNING = "running"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    """It ended before all trials had run, and can be resumed."""
    DIED = "died"
    """Its process ended without storing a status; the run can be resumed."""


@dataclass(frozen=True, slots=True)
class EndpointTrouble:
    """An endpoint of an agent that refused requests or was down during a run."""

    name: str
    """Its host, or the name of the agent."""
    highest: int
    """The most requests that were in flight at the same time."""
    refusals: int
    """Requests that it refused because of its rate limit; they were sent again."""
    faults: int
    """Requests that ended with a server error or a broken connection."""
    down_seconds: float
    """How long no requests were sent because it was down."""

    @property
    def text(self) -> str:
        """`paused 9 s while the provider was down; 43 requests were refused`."""
        parts = []
        if self.down_seconds:
            parts.append(f"paused {self.down_seconds:.0f} s while the provider was down")
        if self.refusals:
            parts.append("1 request was refused" if self.refusals == 1 else f"{self.refusals:,} requests were refused")
        return "; ".join(parts)

    @property
    def details(self) -> str:
        """What it took, and what failed."""
        return f"{self.name}: at most {self.highest:,} in flight, {self.refusals:,} refused, {self.faults:,} failed"


@renamed_fields(
    {
        "uncounted": "unpriced_note",
        "evaluator_keys": "scoring_keys",
        "judged_by": "configured_judge",
        "repeats": "planned_trials",
    }
)
@dataclass
class Run:
    """One execution of one or more suites: the facts about it, its cases, trials and verdict.

    `passed` is a yes or no and `failed` a list on every level: a run has failed cases, a case failed trials, a trial
    failed scores. As a condition, a run is true if it passed, so a test can say `assert run`.

    >>> run = proctor.run("shop.yaml")
    >>> run
    <Run shop: failed, 1 of 2 cases passed; not passed: lost>
    >>> run.passed, [case.id for case in run.failed], run["lost"].scores["Contains"].value
    (False, ['lost'], 0.0)
    >>> run.pass_rate, run.pass_rate.of
    (Rate(0.5, of=2, low=0.095, high=0.905), 2)

    The trials of a stored run are read from the store when they are used, so that listing runs is cheap.
    """

    id: str
    started_at: float
    suites: tuple[SuiteInfo, ...] = ()
    summaries: Sequence[TrialSummary] = ()
    """The part of every trial that verdicts need, in the order of the plan."""
    trials: Sequence[Trial] = ()
    """The complete trials in the order of the plan."""
    finished_at: float | None = None
    status: RunStatus = RunStatus.FINISHED
    interrupted: bool = False
    """Whether it was ended from outside (Ctrl-C, SIGTERM, its process died), so that its exit code is 130. False for a
    run that stopped by itself, for example because its budget is spent."""
    stopped_by: str = ""
    """The signal that interrupted the run, such as `SIGINT`; known only in the process that runs it."""
    note: str = ""
    """Why the run stopped early, if it did."""
    environment: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Json] = field(default_factory=dict)
    store: str | None = None
    """The folder of its store; `None` for a run that is not stored."""
    endpoints: tuple[EndpointTrouble, ...] = ()
    """The endpoints of agents that refused requests or were down."""
    judges: Sequence[JudgeSummary] = ()
    """The judges that scored answers, with their calls and cost."""
    unpriced_note: str = ""
    """A note on calls that the budget does not include, because their cost is not known."""
    masked_note: str = ""
    """How many scores depend on text in which secrets are masked, if answers were scored again."""
    hedging_note: str = ""
    """How many trials were asked twice because the answer was late, and what that gained."""
    name: str = ""
    """The name that the user gave the run."""
    git: GitState | None = None
    """The commit it ran at, if that was inside a git repository."""
    scoring_keys: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By suite and case: a key of what decides its outcome (evaluators, thresholds, judge). The case "" means all
    cases that are not listed."""
    skipped_files: Mapping[str, str] = field(default_factory=dict)
    """By path: why a file in a folder that was tested is not a suite, although its ending is that of one."""
    gate: GateResult | None = None
    """The result of the regression gate, if the run was gated."""
    configured_judge: str = ""
    """The judge that the settings name; `judges` has the ones that were used."""
    planned_trials: Mapping[CaseAddress, int] = field(default_factory=dict)
    """While it runs: the number of trials of each case that has more than one."""
    no: int = 0
    """Its number in the store."""
    plan: str = ""
    """The fingerprint of the plan: a run can only be resumed with the same plan."""
    planned: int | None = None
    """Number of planned trials, repeats included."""
    scoring: str | None = None
    """The key of evaluators and criteria: a run with another key is scored again when it is resumed."""
    stored_verdict: StoredVerdict | None = None
    """The verdict in the store; `verdict(run)` computes it."""
    counts: Mapping[str, int] | None = None
    """Number of trials by outcome, from the store."""
    rescored: str | None = None
    """The id of the run whose answers were rescored."""
    extra: Mapping[str, Json] = field(default_factory=dict)
    """What else is stored with the run, for example by a newer version of Proctor; it is written back unchanged."""
    source: Sequence[Suite] = field(default=(), compare=False, repr=False)
    """The suites that ran, with their functions; known only in the process that ran them."""

    _results: _Results | None = field(default=None, init=False, compare=False, repr=False)

    @property
    def verdict(self) -> RunVerdict:
        """The verdict with the figures of every suite; printed, it is one line."""
        return self._current_results.verdict

    @property
    def outcome(self) -> Outcome:
        """The verdict as the outcome of a case would be: `pending` if the run is inconclusive."""
        return self.verdict.outcome

    @property
    def is_inconclusive(self) -> bool:
        """Whether pending scores leave the verdict open."""
        return self.outcome is Outcome.PENDING

    @property
    def passed(self) -> bool:
        """Whether the verdict is `passed`. `bool(run)` is the same."""
        return self.outcome is Outcome.PASSED

    @property
    def reason(self) -> str:
        """The reason of the verdict, such as `1 of 2 cases passed`."""
        return self.verdict.reason

    @property
    def cases(self) -> Sequence[CaseResult]:
        """The results by case, in the order of the plan. Iterating the run gives the same."""
        return self._current_results.cases

    @property
    def failed(self) -> list[CaseResult]:
        """The cases that failed. Cases without a verdict are in `errors` and `pending`."""
        return self._current_results.cases.failed

    @property
    def errors(self) -> list[CaseResult]:
        """The cases whose outcome is not known because the infrastructure or an evaluator broke."""
        return self._current_results.cases.with_outcome(Outcome.ERROR)

    @property
    def pending(self) -> list[CaseResult]:
        """The cases that need a person or a model to decide."""
        return self._current_results.cases.with_outcome(Outcome.PENDING)

    @property
    def skipped(self) -> list[CaseResult]:
        """The cases that were skipped."""
        return self._current_results.cases.with_outcome(Outcome.SKIPPED)

    @property
    def pass_rate(self) -> Rate:
        """The share of cases that passed, of those that passed or failed; quarantined cases do not count."""
        decided = [case for case in self.cases if not case.is_quarantined]
        passed = sum(case.passed for case in decided)
        return Rate.of_share(passed, passed + sum(case.outcome is Outcome.FAILED for case in decided))

    @property
    def means(self) -> Mapping[str, Rate]:
        """The mean score by evaluator. Repeats of a case count as one observation."""
        by_case: dict[CaseAddress, list[TrialSummary]] = {}
        for summary in self.summaries:
            by_case.setdefault((summary.suite, summary.case_id), []).append(summary)
        return {item.evaluator: Rate.of_estimate(item.scores) for item in evaluator_summaries(by_case.values())}

    @property
    def cost_usd(self) -> float | None:
        """What the agents' answers cost, in US dollars; `None` if it is not known."""
        return self.verdict.cost_usd

    @property
    def tokens(self) -> int | None:
        """The tokens of the agents' answers; `None` if they are not known."""
        return self.verdict.tokens

    @property
    def arms(self) -> Mapping[str, Run]:
        """By name, the part of the run with one version of the agent; empty if only one ran."""
        return {name: self._arm(name) for name in dict.fromkeys(info.agent for info in self.suites if info.source)}

    def __bool__(self) -> bool:
        return self.passed

    def __len__(self) -> int:
        return len(self.cases)

    def __iter__(self) -> Iterator[CaseResult]:
        return iter(self.cases)

    def __contains__(self, case_id: object) -> bool:
        return self._current_results.cases.has(case_id)

    def __getitem__(self, key: int | str | tuple[str, str]) -> CaseResult:
        """The case at this position, with this id, or with this suite and id. Raises `KeyError` or `IndexError`."""
        cases = self._current_results.cases
        if isinstance(key, int):
            return cases[key]
        return cases.find(key) if isinstance(key, str) else cases.find(key[1], key[0])

    @property
    def _current_results(self) -> _Results:
        """The verdict and the cases, computed once for a finished run, and again while trials are added to it."""
        state = (len(self.summaries), self.status, self.interrupted, self.note, id(self.gate), id(self.summaries))
        if self._results is None or self._results.state != state:
            run_verdict = verdict_of(self)
            cases = CaseResults(run_verdict, self.suites, lambda address: self.trials_of({address}))
            self._results = _Results(state, run_verdict, cases)
        return self._results

    def _arm(self, name: str) -> Run:
        """The run with the suites of one version of the agent, each under its own name."""
        infos = [info for info in self.suites if info.source and info.agent == name]
        names = {info.name: info.source for info in infos}
        originals = {info.source: info.name for info in infos}

        def read(cases: Collection[CaseAddress] | None) -> Iterable[Trial]:
            own = None if cases is None else {(originals.get(suite, suite), case_id) for suite, case_id in cases}
            trials = self.trials if own is None else self.trials_of(own)
            return (replace(trial, suite=names[trial.suite], arm=name) for trial in trials if trial.suite in names)

        summaries = [
            replace(summary, suite=names[summary.suite], arm=name)
            for summary in self.summaries
            if summary.suite in names
        ]
        planned = sum(info.planned for info in infos)
        return replace(
            self,
            suites=tuple(replace(info, name=info.source, source="") for info in infos),
            note=self.note if len(summaries) < planned else "",
            summaries=summaries,
            trials=Trials(read, lambda: len(summaries)),
            planned=planned,
            stored_verdict=None,
            counts=None,
        )

    @property
    def ended_because(self) -> str:
        """Why trials may be missing; empty for a complete run."""
        return self.note or _UNFINISHED.get(self.status, "")

    def trials_of(self, cases: Collection[CaseAddress]) -> Iterable[Trial]:
        """The trials of these cases (suite and id); of a stored run, no others are read."""
        if isinstance(self.trials, Trials):
            return self.trials.for_cases(cases)
        return (trial for trial in self.trials if (trial.suite, trial.case.id) in cases)

    @property
    def compares_agents(self) -> bool:
        """Whether a suite ran on several arms. The gate compares its two versions itself."""
        return self.gate is None and any(info.source for info in self.suites)

    def __repr__(self) -> str:
        """One line, such as `<Run shop: failed, 1 of 2 cases passed; not passed: lost>`."""
        names = ", ".join(dict.fromkeys(info.source or info.name for info in self.suites))
        others = [case.id for case in self.cases if case.outcome not in (Outcome.PASSED, Outcome.SKIPPED)]
        more = f" and {len(others) - MAX_NAMES_IN_REPR} more" if len(others) > MAX_NAMES_IN_REPR else ""
        listed = f"; not passed: {', '.join(others[:MAX_NAMES_IN_REPR])}{more}" if others else ""
        return f"<Run {names}: {self.verdict.word}, {self.reason}{listed}>"

    def __str__(self) -> str:
        """What `print` writes."""
        out = io.StringIO()
        self.print(file=out)
        return out.getvalue()

    def print(self, *, verbose: bool = False, file: TextIO | None = None) -> None:
        """Print what `proctor test` prints: the cases, why they failed, and the verdict.

        - `verbose` explains every trial, also those that passed.
        - `file` is written to instead of standard output.
        """
        from proctor.reporting.terminal.progress import print_finished_run  # reporting builds on results

        print_finished_run(self, sys.stdout if file is None else file, verbose=verbose)

    def assert_passed(self) -> None:
        """Raise `AssertionError` unless the run passed, with the story of each case that did not pass.

        If the run is inconclusive, a test of pytest goes on and is pending at its end. Elsewhere this raises.

        >>> proctor.run("shop.yaml", agent="oracle").assert_passed()
        """
        __tracebackhide__ = True
        if not self.passed:
            from proctor.reporting.failed_run import failure_message  # reporting builds on results

            message = failure_message(self)
            pending = [trial for case in self.pending for trial in case.trials] if self.is_inconclusive else []
            if not pending or not record_open_check(open_check_of(pending, message)):
                raise AssertionError(message)

    def rescore(self, *, evaluators: Sequence[EvaluatorLike] | None = None, judge: JudgeLike | None = None) -> Run:
        """Score the same answers again, with other evaluators or another judge. Asks no agent; stores nothing.

        - `evaluators` replace those of the suites. What cases expect is checked in any case.
        - `judge` answers for evaluators that need a model.
        """
        from proctor.running.rescore import rescore_run  # running builds on results

        return rescore_run(self, evaluators=evaluators, judge=judge)

    def save(self, path: str | Path) -> None:
        """Write the run to a JSON Lines file, as `proctor runs export` does; `Run.load` reads it.

        Secrets that are masked in reports are masked in the file.
        """
        from proctor.results.store.run_files import save_run  # the store builds on runs

        save_run(self, Path(path))

    @classmethod
    def load(cls, which: str | Path = "last", *, store: str | Path = ".proctor") -> Run:
        """Read a stored run.

        - `which` is an id or the beginning of one, a name, `last`, `last~1`, or a file that `save` wrote.
        - `store` is the folder to look in.

        >>> proctor.run("shop.yaml", store=".proctor").save("monday.jsonl")
        >>> proctor.Run.load("monday.jsonl")
        <Run shop: failed, 1 of 2 cases passed; not passed: lost>
        """
        from proctor.results.store.run_files import open_run  # the store builds on runs

        return open_run(Path(store), str(which))[1]

    def to_dicts(self) -> list[dict[str, Json]]:
        """One flat dictionary per trial, in the order of the plan: for tables, queries and plots.

        Each has `run`, `suite`, `agent`, `case`, `tags`, `trial`, `outcome`, `reason`, `input`, `answer`, `tools`,
        `duration_ms`, `tokens`, `cost_usd`, and one `score.NAME` per evaluator: its mean over turns.

        >>> run = proctor.run("shop.yaml")
        >>> [(row["case"], row["outcome"], row["score.Contains"]) for row in run.to_dicts()]
        [('shipped', 'passed', 1.0), ('lost', 'failed', 0.0)]
        """
        from proctor.reporting.tables import trial_rows  # reporting builds on results

        return trial_rows(self)

    def to_pandas(self) -> pandas.DataFrame:
        """The rows of `to_dicts` as a pandas table; pandas has to be installed (`pip install pandas`).

        >>> table = proctor.run("shop.yaml").to_pandas()
        >>> int((table["outcome"] == "failed").sum())
        1
        """
        from proctor.reporting.tables import as_frame  # reporting builds on results

        return as_frame(self.to_dicts())

    def _repr_html_(self) -> str:
        """The run as a notebook shows it: the verdict, the cases, and why cases failed."""
        from proctor.reporting.html.notebook import run_html  # reporting builds on results

        return run_html(self)


@dataclass(frozen=True, slots=True)
class _Results:
    """The verdict of a run and its cases, as long as the state of the run is the same."""

    state: tuple[object, ...]
    verdict: RunVerdict
    cases: CaseResults


MAX_NAMES_IN_REPR = 5
"""How many cases that did not pass the one-line form of a run names."""

_UNFINISHED = {
    RunStatus.RUNNING: "the run is still in progress",
    RunStatus.DIED: "the process ended before the run was finished",
}


@dataclass(frozen=True, slots=True)
class ScoreThreshold:
    """Passes if the share `pct` of inputs scores at least `threshold` on all evaluators; fails without inputs."""

    threshold: float = 0.5
    pct: float = 1.0

    def __post_init__(self) -> None:
        for name in ("threshold", "pct"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ValueError(f"{name} must be between 0 and 1, not {getattr(self, name)}")

    def __call__(self, results: Sequence[Sequence[Evaluation]]) -> tuple[bool, str]:
        """Whether the matrix `[inputs][evaluators]` passes, and a sentence that says so."""
        good = sum(
            bool(row) and all(passes(cell.score, self.threshold, cell.passed) for cell in row) for row in results
        )
        total = len(results)
        passed = total > 0 and passes(good / total, self.pct)
        share = good / total if total else 0.0
        return passed, (
            f"{'Pass' if passed else 'Fail'}: {good}/{total} inputs ({share:.1%}) scored >= {self.threshold:g}"
            f" on all evaluators (required: {self.pct:.1%})"
        )

    @property
    def criteria(self) -> Criteria:
        """The same rule as criteria of a suite."""
        return Criteria(threshold=self.threshold, pct=self.pct)
