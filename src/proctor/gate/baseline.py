"""The baseline: how often each case passed, as a text file that belongs in git next to the suite.

The file has one line per run and case. Lines are sorted and self-contained, so that git merges two versions of the file
without a conflict (`merge=union`), and adding a run twice changes nothing.

`Baseline.lookup` is the one place that decides what the baseline of a case is: the sum of the lines in force that have
the same content, evaluators and agent. A renamed case is found by its content. If evaluators were added, removed or
changed, the others keep their history: a line counts how often each combination of evaluators passed (`patterns`), so
the trials can be counted as if only the evaluators that both have in common had scored them. A case that changed on
purpose restarts: its new lines have a higher `restart`, and lines with a lower one are no longer in force.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from proctor.base.atomic_write import atomic_write
from proctor.base.documents import did_you_mean
from proctor.base.errors import StoreError, UsageError
from proctor.base.json_data import Json, fingerprint, to_text
from proctor.cases.formats.folders import BASELINE_SUFFIX
from proctor.cases.identity import CaseAddress, content_key, own_name
from proctor.gate.beliefs import BaselineRecord
from proctor.gate.other_days import Counts
from proctor.results.gate_result import NEW_ARM, OLD_ARM, CaseStatus
from proctor.results.judge_usage import judge_call_keys
from proctor.results.run import Run, RunStatus
from proctor.results.score import Outcome, Score, worst_outcome
from proctor.results.statistics import Estimate, share_of
from proctor.results.store.store import Store
from proctor.results.trial import Trial, TrialSummary

VERSION = 1
PROJECT_BASELINE = "proctor" + BASELINE_SUFFIX
"""The baseline file of suites that are not read from a file."""
MAX_LINE = 100_000


class InvalidBaseline(UsageError):
    """A baseline file that cannot be read. It is not changed."""


@dataclass(frozen=True, slots=True)
class SampleStats:
    """The count, mean and standard deviation of some values."""

    count: int
    mean: float
    deviation: float

    @classmethod
    def of(cls, values: Iterable[float | None]) -> SampleStats | None:
        """The statistics of the finite values; `None` if there are none."""
        known = [value for value in values if value is not None and math.isfinite(value)]
        if not known:
            return None
        mean = math.fsum(known) / len(known)
        squares = math.fsum((value - mean) ** 2 for value in known)
        return cls(len(known), mean, math.sqrt(squares / (len(known) - 1)) if len(known) > 1 else 0.0)

    @classmethod
    def pooled(cls, parts: Iterable[SampleStats | None]) -> SampleStats | None:
        """The statistics of the values of all parts together."""
        known = [part for part in parts if part is not None]
        count = sum(part.count for part in known)
        if not count:
            return None
        mean = math.fsum(part.count * part.mean for part in known) / count
        squares = math.fsum(
            (part.count - 1) * part.deviation**2 + part.count * (part.mean - mean) ** 2 for part in known
        )
        return cls(count, mean, math.sqrt(squares / (count - 1)) if count > 1 else 0.0)

    @property
    def total(self) -> float:
        return self.count * self.mean


@dataclass(frozen=True, slots=True)
class CaseIdentity:
    """What must be the same for trials of two runs to be comparable."""

    suite: str
    case: str
    agent: str
    """The agent's name, not its fingerprint: the gate is there to test changes of its code."""
    content: str
    evaluators: str
    checks: tuple[str, ...] = field(default=(), compare=False)
    """The keys of its deciding evaluators one by one (`check_key`), if they are known."""


@dataclass(frozen=True, slots=True)
class BaselineLine:
    """The trials and passes of one case in one run."""

    suite: str
    case: str
    agent: str
    content: str
    evaluators: str
    run: str
    trials: int
    passes: int
    since: str = ""
    """The run with which the case restarted; empty if it never did."""
    restart: int = 0
    """How many times the case restarted before; lines with a lower number are no longer in force."""
    reason: str = ""
    """Why the run was accepted, in the user's words."""
    models: tuple[str, ...] = ()
    """The models that answered, as providers name them, as far as they are known."""
    checks: tuple[str, ...] = ()
    """The keys of the deciding evaluators."""
    patterns: Mapping[str, int] = field(default_factory=dict, hash=False)
    """How many trials had which results: `{"11": 8, "10": 2}` if the second of two evaluators failed twice."""
    score: SampleStats | None = None
    seconds: SampleStats | None = None
    usd: SampleStats | None = None
    tokens: SampleStats | None = None

    @property
    def identity(self) -> CaseIdentity:
        return CaseIdentity(self.suite, self.case, self.agent, self.content, self.evaluators, self.checks)

    def counts(self, checks: Collection[str] | None = None) -> Counts:
        """Passes and trials; with `checks`, as if only these evaluators had scored."""
        if checks is None:
            return Counts(self.passes, self.trials)
        at = [position for position, check in enumerate(self.checks) if check in checks]
        passes = sum(count for pattern, count in self.patterns.items() if all(pattern[i] == "1" for i in at))
        return Counts(passes, sum(self.patterns.values()))

    @property
    def key(self) -> tuple[str, ...]:
        return (self.suite, self.case, self.agent, self.content, self.evaluators, self.run)


STATISTICS = ("score", "seconds", "usd", "tokens")
NAMES = tuple(field.name for field in fields(BaselineLine))


@dataclass(frozen=True, slots=True)
class CaseBaseline:
    """The baseline of a case, or the reason why it has none."""

    identity: CaseIdentity
    record: BaselineRecord | None
    missing_because: str = ""
    """Why there is no record: the case is new, or something about it changed."""
    runs: tuple[str, ...] = ()
    """The runs that the record sums up, the latest last."""
    counts_by_run: Mapping[str, Counts] = field(default_factory=dict)
    """Passes and trials in each of them."""
    since: str = ""
    """The run with which the case restarted; empty if it never did."""
    restart: int = 0
    """How many times it restarted."""
    reason: str = ""
    """Why the latest run that gave a reason was accepted."""
    models: tuple[str, ...] = ()
    """The models that answered in these runs, as far as they are known."""
    checks: frozenset[str] | None = None
    """The evaluators that the record is about, if others were added, removed or changed since; `None` for all."""
    score: SampleStats | None = None
    seconds: SampleStats | None = None
    usd: SampleStats | None = None
    tokens: SampleStats | None = None

    @property
    def address(self) -> CaseAddress:
        return self.identity.suite, self.identity.case

    @property
    def pass_rate(self) -> Estimate | None:
        """How often it passed, with a 95 % interval."""
        return None if self.record is None else share_of(self.record.passes, self.record.trials)

    @property
    def is_flaky(self) -> bool:
        """Whether it both passed and failed."""
        return self.record is not None and 0 < self.record.passes < self.record.trials


NEW = "the case is new"
CHANGED_CASE = "the case changed since the baseline was recorded"
CHANGED_EVALUATORS = "its evaluators, thresholds or judge changed since the baseline was recorded"


ENOUGH_TRIALS = 5
"""With this many trials under all its present evaluators, older trials under some of them are not needed."""


class Baseline:
    """The lines of one or more baseline files."""

    def __init__(self, lines: Iterable[BaselineLine] = ()) -> None:
        chosen: dict[tuple[str, ...], BaselineLine] = {}
        for line in lines:
            known = chosen.get(line.key)
            # A run that was resumed after it was added to the baseline has more trials than its first line.
            if known is None or (line.since, line.trials) >= (known.since, known.trials):
                chosen[line.key] = line
        self.lines = tuple(chosen[key] for key in sorted(chosen))
        self._by_case: dict[CaseAddress, list[BaselineLine]] = {}
        for line in self.lines:
            self._by_case.setdefault((line.suite, line.case), []).append(line)

    def lines_for(self, identity: CaseIdentity) -> tuple[list[BaselineLine], frozenset[str] | None]:
        """The lines that count for a case, and under which of its evaluators; `None` for all of them."""
        return _comparable_lines(identity, lines_in_force(self._same_content(identity)))

    def _same_content(self, identity: CaseIdentity) -> list[BaselineLine]:
        recorded = self._recorded(identity)
        return [line for line in recorded if line.agent == identity.agent and line.content == identity.content]

    def _recorded(self, identity: CaseIdentity) -> list[BaselineLine]:
        """All lines of a case: those under its id, or if it was renamed, those with the same content."""
        return (
            self._by_case.get((identity.suite, identity.case))
            or [line for line in self.lines if line.suite == identity.suite and line.content == identity.content]
            or self._recorded_beside_namesakes(identity)
        )

    def _recorded_beside_namesakes(self, identity: CaseIdentity) -> list[BaselineLine]:
        """The lines of a case whose suite ran with others of the same name, which changes its name in that run."""
        name = own_name(identity.suite)
        return [line for line in self.lines if line.case == identity.case and own_name(line.suite) == name]

    def lookup(self, identity: CaseIdentity) -> CaseBaseline:
        """The baseline of a case over all its runs. Everything that shows or uses a baseline calls this."""
        lines, checks = self.lines_for(identity)
        if not lines:
            return CaseBaseline(identity, None, self._missing_because(identity))
        # The scores of a trial are averaged over its evaluators, so they compare only under the same ones.
        score = SampleStats.pooled(line.score for line in lines) if checks is None else None
        counts = {line.run: line.counts(checks) for line in lines}
        record = BaselineRecord(
            trials=sum(item.trials for item in counts.values()),
            passes=sum(item.passes for item in counts.values()),
            score_mean=None if score is None else score.mean,
            score_deviation=None if score is None else score.deviation,
        )
        return CaseBaseline(
            identity,
            record,
            runs=tuple(line.run for line in lines),
            counts_by_run=counts,
            since=lines[-1].since,
            restart=lines[-1].restart,
            reason=next((line.reason for line in reversed(lines) if line.reason), ""),
            models=tuple(dict.fromkeys(model for line in lines for model in line.models)),
            checks=checks,
            score=score,
            seconds=SampleStats.pooled(line.seconds for line in lines),
            usd=SampleStats.pooled(line.usd for line in lines),
            tokens=SampleStats.pooled(line.tokens for line in lines),
        )

    def _missing_because(self, identity: CaseIdentity) -> str:
        recorded = self._recorded(identity)
        if self._same_content(identity):
            return CHANGED_EVALUATORS
        if any(line.agent == identity.agent for line in recorded):
            return CHANGED_CASE
        if recorded:
            return f"its baseline was recorded with the agent {recorded[-1].agent}, not with {identity.agent}"
        return NEW

    def cases(self) -> list[CaseBaseline]:
        """The baseline of every case, in the order of the file; one per version of a case that changed."""
        identities = dict.fromkeys(line.identity for line in self.lines)
        return [self.lookup(replace(identity, checks=())) for identity in identities]

    def latest_cases(self) -> list[CaseBaseline]:
        """The baseline of every case and agent, only for the version in its latest run."""
        latest: dict[tuple[str, str, str], CaseIdentity] = {}
        for line in sorted(self.lines, key=lambda line: line.run):
            latest[line.suite, line.case, line.agent] = replace(line.identity, checks=())
        return [self.lookup(identity) for identity in latest.values()]

    def text(self) -> str:
        """The contents of the file."""
        return "".join(write_line(line) for line in self.lines)


def lines_in_force(lines: Sequence[BaselineLine]) -> list[BaselineLine]:
    """The lines of a case that count: those since its latest restart."""
    latest = max(((line.restart, line.since) for line in lines), default=(0, ""))
    return [line for line in lines if (line.restart, line.since) == latest]


def _comparable_lines(
    identity: CaseIdentity, lines: Sequence[BaselineLine]
) -> tuple[list[BaselineLine], frozenset[str] | None]:
    """The lines that the trials of a case are compared with, and under which evaluators; `None` for all of them."""
    exact = [line for line in lines if line.evaluators == identity.evaluators]
    if sum(line.trials for line in exact) >= ENOUGH_TRIALS:
        return exact, None
    others = [line for line in lines if line.evaluators != identity.evaluators]
    common = frozenset(identity.checks).intersection(others[-1].checks) if others else frozenset()
    partial = [line for line in lines if common and common.issubset(line.checks)]
    return (
        (partial, common)
        if sum(line.trials for line in partial) > sum(line.trials for line in exact)
        else (exact, None)
    )


def check_key(title: str, evaluator: str, threshold: float | None) -> str:
    """What must be the same for the results of one evaluator to be comparable; `evaluator` is its fingerprint."""
    return fingerprint(title, evaluator, threshold)


def _key_of(score: Score) -> str:
    return check_key(score.evaluator, score.fingerprint, score.threshold)


def outcome_under(checks: Collection[str] | None, trial: Trial) -> Outcome:
    """The outcome of a trial as if only these evaluators had scored it; unchanged if the agent ended it early."""
    if checks is None or not trial.scores:
        return trial.outcome
    own = [score.outcome for score in trial.scores if not score.report_only and _key_of(score) in checks]
    return worst_outcome(own) if own else trial.outcome


def outcome_of_others(checks: Collection[str], trial: Trial) -> Outcome | None:
    """The outcome of a trial under all other evaluators; `None` if there are none, or nothing was scored."""
    own = [score.outcome for score in trial.scores if not score.report_only and _key_of(score) not in checks]
    return worst_outcome(own) if own else None


def is_new_evidence(trial: Trial) -> bool:
    """Whether the agent answered in this trial. A stored answer, or one from a cache, tells nothing new."""
    return not trial.reused and not any(reply.from_cache for reply in trial.replies)


def models_of(trials: Iterable[Trial]) -> tuple[str, ...]:
    """The models that answered, as providers name them, as far as they are known."""
    usages = (reply.usage for trial in trials for reply in trial.replies)
    return tuple(sorted({usage.model for usage in usages if usage is not None and usage.model}))


def _patterns(trials: Sequence[Trial]) -> tuple[tuple[str, ...], dict[str, int]]:
    """The deciding evaluators of trials that passed or failed, and how many trials had which results."""
    results = []
    for trial in trials:
        checks: dict[str, bool] = {}
        for score in trial.scores:
            if not score.report_only and score.outcome is not Outcome.SKIPPED:
                key = _key_of(score)
                checks[key] = checks.get(key, True) and score.outcome is Outcome.PASSED
        results.append(checks)
    keys = tuple(sorted({key for checks in results for key in checks}))
    # An agent that failed before it could be scored failed under every evaluator.
    counts = Counter("".join("01"[checks.get(key, False)] for key in keys) for checks in results)
    return keys, dict(sorted(counts.items())) if keys else {}


def baseline_path(suite: str | Path | None) -> Path:
    """The baseline file of a suite: next to the suite's file, or else in the working folder."""
    if suite is None:
        return Path(PROJECT_BASELINE)
    path = Path(suite)
    return path.with_name(path.stem + BASELINE_SUFFIX)


def read_baseline(path: Path) -> Baseline:
    """Read a baseline file; raises `InvalidBaseline` with the line if it is damaged."""
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidBaseline(f"{path}: not UTF-8 text (byte {error.start}); restore the file from git") from None
    except OSError as error:
        raise InvalidBaseline(f"{path}: cannot read the baseline: {error.strerror or error}") from None
    return Baseline(_lines(path, text))


def _lines(path: Path, text: str) -> Iterable[BaselineLine]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            yield parse_line(line)
        except ValueError as error:
            raise InvalidBaseline(f"{path}:{number}: {error}") from None


def parse_line(text: str) -> BaselineLine:
    """Parse one line; raises `ValueError` with what is wrong."""
    if text.startswith(("<<<<<<<", "=======", ">>>>>>>", "|||||||")):
        raise ValueError(
            "merge conflict marker; keep the lines of both sides (with `*.baseline.jsonl merge=union` in "
            ".gitattributes, git does that by itself)"
        )
    if len(text) > MAX_LINE:
        raise ValueError("longer than any line of a baseline; restore the file from git")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError(
            "not a complete line of a baseline; the file was cut off or edited, restore it from git"
        ) from None
    if not isinstance(data, dict):
        raise ValueError("not a JSON object, so not a line of a baseline; restore the file from git")
    return _line_from(data)


def _line_from(data: dict[str, Json]) -> BaselineLine:
    version = data.pop("v", None)
    if isinstance(version, int) and version > VERSION:
        raise ValueError(
            f"written by a newer Proctor (baseline version {version}; this Proctor reads {VERSION}); update Proctor"
        )
    if version != VERSION:
        raise ValueError(f'no version; each line must begin with {{"v": {VERSION}, ...')
    for name in data:
        if name not in NAMES:
            raise ValueError(f"unknown key {name!r}{did_you_mean(name, NAMES)}")
    values = {name: _checked_value(name, data[name]) for name in NAMES if name in data}
    missing = [field.name for field in fields(BaselineLine) if field.name not in values and _is_required(field)]
    if missing:
        raise ValueError(f"key {missing[0]!r} is missing; restore the file from git")
    if not 0 <= values["passes"] <= values["trials"] or values["trials"] < 1:
        raise ValueError(f"{values['passes']} passes of {values['trials']} trials is impossible")
    if any(len(pattern) != len(values.get("checks", ())) for pattern in values.get("patterns", {})):
        raise ValueError("patterns and checks do not fit; restore the file from git")
    return BaselineLine(**values)


def _is_required(field: Any) -> bool:
    return field.name not in (*STATISTICS, "since", "restart", "reason", "models", "checks", "patterns")


def _checked_value(name: str, value: Json) -> Any:
    if name in ("checks", "models"):
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise ValueError(f"{name} must be a list of strings, not {to_text(value, 60)}")
        return tuple(value)
    if name == "patterns":
        if not isinstance(value, dict) or not all(isinstance(n, int) and n > 0 for n in value.values()):
            raise ValueError(f"patterns must be an object of counts, not {to_text(value, 60)}")
        return value
    if name in ("trials", "passes", "restart"):
        if not isinstance(value, int) or isinstance(value, bool):
            raise ValueError(f"{name} must be a whole number, not {to_text(value, 60)}")
        return value
    if name in STATISTICS:
        numbers = isinstance(value, list) and all(isinstance(n, int | float) and math.isfinite(n) for n in value)
        if not numbers or len(value) != 3 or not isinstance(value[0], int) or value[0] < 1 or value[2] < 0:
            raise ValueError(f"{name} must be [count, mean, standard deviation], not {to_text(value, 60)}")
        return SampleStats(value[0], float(value[1]), float(value[2]))
    if not isinstance(value, str):
        raise ValueError(f"{name} must be a string, not {to_text(value, 60)}")
    return value


def write_line(line: BaselineLine) -> str:
    """The line as text; numbers are rounded to six digits."""
    data: dict[str, Json] = {"v": VERSION}
    for name in NAMES:
        value = getattr(line, name)
        if isinstance(value, SampleStats):
            data[name] = [value.count, _short(value.mean), _short(value.deviation)]
        elif isinstance(value, tuple):
            data.update({name: list(value)} if value else {})
        elif value not in (None, "", {}) and (name != "restart" or value):
            data[name] = value
    for name in ("suite", "case", "agent"):  # required, even if they are empty
        data.setdefault(name, "")
    return json.dumps(data, separators=(",", ":")) + "\n"


def _short(number: float) -> float:
    return float(f"{number:.6g}")


def write_baseline(path: Path, baseline: Baseline) -> bool:
    """Write the file completely or not at all; returns whether it changed."""
    text = baseline.text()
    if path.is_file() and path.read_bytes() == text.encode():
        return False
    with atomic_write(path) as draft:
        draft.write_text(text, encoding="utf-8", newline="\n")
    return True


def trial_score(trial: TrialSummary) -> float | None:
    """The mean of the scores that count; `None` if none of them is a number."""
    values = [row.value for row in trial.scores if not row.report_only and row.value is not None]
    return math.fsum(values) / len(values) if values else None


def baseline_of_run(run: Run) -> Baseline:
    """A single run as the baseline."""
    return Baseline(_lines_to_record(run))


def _lines_to_record(run: Run) -> list[BaselineLine]:
    lines = lines_of_run(run)
    if not lines:
        raise StoreError(f"run {run.id} has no new trial that passed or failed, so it cannot be a baseline")
    return lines


def lines_of_run(run: Run) -> list[BaselineLine]:
    """One line per case that passed or failed in a stored run."""
    lines = []
    for identity, all_trials in _trials_by_identity(run).items():
        trials = [trial for trial in all_trials if trial.outcome in (Outcome.PASSED, Outcome.FAILED)]
        checks, patterns = _patterns(trials)
        if trials:
            decided = [TrialSummary.of(trial) for trial in trials]
            lines.append(
                BaselineLine(
                    *(identity.suite, identity.case, identity.agent, identity.content, identity.evaluators),
                    run=run.id,
                    models=models_of(trials),
                    checks=checks,
                    patterns=patterns,
                    trials=len(decided),
                    passes=sum(trial.outcome is Outcome.PASSED for trial in decided),
                    score=SampleStats.of(trial_score(trial) for trial in decided),
                    seconds=SampleStats.of(trial.duration_ms / 1000 for trial in decided),
                    usd=SampleStats.of(trial.cost_usd for trial in decided),
                    tokens=SampleStats.of(trial.tokens for trial in decided),
                )
            )
    return lines


def _trials_by_identity(run: Run) -> dict[CaseIdentity, list[Trial]]:
    """The trials of a stored run that are new evidence: none that reuse answers of earlier runs, and of several trials
    of a case with one and the same verdict of a judge only the first.
    """
    infos = {info.name: info for info in run.suites}
    identities: dict[CaseAddress, CaseIdentity] = {}
    trials: dict[CaseIdentity, list[Trial]] = {}
    judgements: set[tuple[CaseAddress, tuple[str, ...]]] = set()
    for trial in run.trials:
        if not is_new_evidence(trial) or (run.gate is not None and trial.arm == OLD_ARM):
            continue
        address = (trial.suite, trial.case.id)
        calls = judge_call_keys(trial)
        if calls and (address, calls) in judgements:
            continue
        judgements.add((address, calls))
        if address not in identities:
            keys = run.scoring_keys.get(trial.suite)
            if keys is None:
                raise UsageError(
                    f"run {run.id} comes from an older Proctor or from pytest and does not record how it was scored; "
                    "run `proctor test` and use that run"
                )
            evaluators = keys.get(trial.case.id, keys[""])
            info = infos[trial.suite]
            agent = info.reference if run.gate is not None and info.arm == NEW_ARM else info.agent
            identities[address] = CaseIdentity(*address, agent, content_key(trial.case), evaluators)
        trials.setdefault(identities[address], []).append(trial)
    return trials


@dataclass(frozen=True, slots=True)
class BaselineUpdate:
    """The result of adding a run to one baseline file."""

    path: Path
    cases: int
    trials: int
    restarted: int
    """Number of cases whose baseline starts again with this run."""
    created: bool
    changed: bool


def update_baseline(
    run: Run,
    target: Path | None = None,
    *,
    restart: bool = False,
    restart_cases: Collection[str] = (),
    reason: str = "",
) -> list[BaselineUpdate]:
    """Add a run to the baselines of its suites, or to `target`. Writes all files or none.

    Cases that regressed or improved according to the gate restart: their earlier trials no longer count. With
    `restart`, all cases of the run restart, and those in `restart_cases` always do. `reason` is stored with each case.
    """
    if run.status is not RunStatus.FINISHED:
        planned = sum(info.planned for info in run.suites)
        raise UsageError(
            f"run {run.id} was interrupted after {len(run.summaries):,} of {planned:,} trials; finish it with "
            "`proctor test --resume` first"
        )
    files = {info.name: target or baseline_path(info.path) for info in run.suites}
    by_file: dict[Path, list[BaselineLine]] = {}
    for line in _lines_to_record(run):
        by_file.setdefault(files[line.suite], []).append(line)
    known_ids = {line.case for lines in by_file.values() for line in lines}
    for case in restart_cases:
        if case not in known_ids:
            raise UsageError(f"--restart-case {case}: run {run.id} has no such case{did_you_mean(case, known_ids)}")
    restarting = _cases_to_restart(run)

    def is_restarted(line: BaselineLine) -> bool:
        return restart or line.case in restart_cases or (line.suite, line.case) in restarting

    updates = []
    for path, lines in by_file.items():
        known = read_baseline(path) if path.exists() else Baseline()
        dated = [
            replace(
                line,
                reason=reason,
                **_restart(known.lookup(line.identity), line.run if is_restarted(line) else ""),
            )
            for line in lines
        ]
        updates.append((path, dated, known))
    return [_update_file(path, lines, known, run.id) for path, lines, known in updates]


def _restart(earlier: CaseBaseline, run: str) -> dict[str, Any]:
    """Which restart a new line of a case belongs to: a new one that begins with `run`, or the latest one."""
    if run and run != earlier.since:
        return {"restart": earlier.restart + 1, "since": run}
    return {"restart": earlier.restart, "since": earlier.since}


def _cases_to_restart(run: Run) -> set[CaseAddress]:
    """The cases that changed according to the gate; all cases after a suite-wide regression."""
    if run.gate is None:
        return set()
    changed = run.gate.with_status(CaseStatus.REGRESSED, CaseStatus.IMPROVED)
    return {case.address for case in (run.gate.cases if run.gate.suite_wide.proven else changed)}


def _update_file(path: Path, lines: list[BaselineLine], known: Baseline, run: str) -> BaselineUpdate:
    created = not path.exists()
    keys = {line.key for line in lines}
    others = [line for line in known.lines if line.key not in keys]
    changed = write_baseline(path, Baseline([*others, *lines]))
    restarted = sum(line.since == run and known.lookup(line.identity).record is not None for line in lines)
    return BaselineUpdate(path, len(lines), sum(line.trials for line in lines), restarted, created, changed)


def baselines_of_suites(
    paths: Mapping[str, Path | None], option: str | None, store: Store | None
) -> tuple[dict[str, Baseline], str]:
    """The baseline of each suite, and where they were read from.

    `paths` has the file of each suite by the suite's name; `option` is the value of `--baseline`, used for all suites.
    """
    if option is not None:
        return dict.fromkeys(paths, baseline_from_option(option, store)), option
    files = {name: baseline_path(path) for name, path in paths.items()}
    baselines = {file: read_baseline(file) if file.is_file() else Baseline() for file in dict.fromkeys(files.values())}
    existing = [str(file) for file in baselines if file.is_file()]
    return {name: baselines[file] for name, file in files.items()}, ", ".join(existing) or "none"


def baseline_from_option(option: str, store: Store | None) -> Baseline:
    """The baseline that `--baseline` names: a file, or a run in the store."""
    path = Path(option)
    if path.is_file():
        return read_baseline(path)
    if path.suffix == ".jsonl" or path.parent != Path():
        raise UsageError(f"--baseline: no file {option}; create it with `proctor baseline accept --baseline {option}`")
    if store is None:
        raise UsageError(f"--baseline {option}: no such file, and no runs are stored here")
    run = store.find_run(option)
    if run.status is not RunStatus.FINISHED:
        raise UsageError(
            f"--baseline {option}: run {run.id} was interrupted; finish it with `proctor test --resume` first"
        )
    return baseline_of_run(run)
