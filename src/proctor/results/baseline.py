"""The baseline: how often each case passed before, as a text file that belongs in git beside the suite.

One line a run and case. Lines are sorted and say everything about themselves, so that `merge=union` joins two versions
of the file without conflict, and accepting a run twice changes nothing. What is usual of a case is the sum of its
lines that have the same content, evaluators and agent.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from proctor.base.atomic_write import whole_file
from proctor.base.documents import nearest
from proctor.base.errors import UsageError
from proctor.base.json_data import Json, show
from proctor.cases.formats.loading import BASELINES
from proctor.results.gate import Past

VERSION = 1
PROJECT = "proctor" + BASELINES
"""The baseline of suites that have no file of their own."""
LONGEST_LINE = 100_000


class BadBaseline(UsageError):
    """A baseline that cannot be read; it is left as it is."""


@dataclass(frozen=True, slots=True)
class Spread:
    """How many values there were, their mean and their standard deviation."""

    count: int
    mean: float
    deviation: float

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Spread | None:
        known = [value for value in values if value is not None and math.isfinite(value)]
        if not known:
            return None
        mean = math.fsum(known) / len(known)
        squares = math.fsum((value - mean) ** 2 for value in known)
        return cls(len(known), mean, math.sqrt(squares / (len(known) - 1)) if len(known) > 1 else 0.0)

    @classmethod
    def pooled(cls, parts: Iterable[Spread | None]) -> Spread | None:
        """The spread of all values together."""
        known = [part for part in parts if part is not None]
        count = sum(part.count for part in known)
        if not count:
            return None
        mean = math.fsum(part.count * part.mean for part in known) / count
        squares = math.fsum(
            (part.count - 1) * part.deviation**2 + part.count * (part.mean - mean) ** 2 for part in known
        )
        return cls(count, mean, math.sqrt(squares / (count - 1)) if count > 1 else 0.0)


@dataclass(frozen=True, slots=True)
class CaseIdentity:
    """What must be the same for trials to say something about each other."""

    suite: str
    case: str
    agent: str
    """The agent's name: its code may change, which is what the gate is for."""
    content: str
    evaluators: str


@dataclass(frozen=True, slots=True)
class BaselineLine:
    """How one case went in one run."""

    suite: str
    case: str
    agent: str
    content: str
    evaluators: str
    run: str
    trials: int
    passes: int
    since: str = ""
    """The accepted run from which on the case is another than before; lines with an older one do not count."""
    score: Spread | None = None
    seconds: Spread | None = None
    usd: Spread | None = None
    tokens: Spread | None = None

    @property
    def identity(self) -> CaseIdentity:
        return CaseIdentity(self.suite, self.case, self.agent, self.content, self.evaluators)

    @property
    def key(self) -> tuple[str, ...]:
        return (self.suite, self.case, self.agent, self.content, self.evaluators, self.run)


SPREADS = ("score", "seconds", "usd", "tokens")
NAMES = tuple(field.name for field in fields(BaselineLine))


@dataclass(frozen=True, slots=True)
class Usual:
    """What is usual of a case, or why nothing is known."""

    past: Past | None
    unknown: str = ""
    """Why there is no past: the case is new, or something about it changed."""
    runs: int = 0
    since: str = ""
    seconds: Spread | None = None
    usd: Spread | None = None
    tokens: Spread | None = None


NEW = "it is new"
CHANGED_CASE = "the case changed since it was recorded"
CHANGED_EVALUATORS = "its evaluators, thresholds or judge changed since it was recorded"


class Baseline:
    """The lines of one or more baseline files."""

    def __init__(self, lines: Iterable[BaselineLine] = ()) -> None:
        chosen: dict[tuple[str, ...], BaselineLine] = {}
        for line in lines:
            known = chosen.get(line.key)
            # a run that was resumed after it was accepted has more trials than the line of its first acceptance
            if known is None or (line.since, line.trials) >= (known.since, known.trials):
                chosen[line.key] = line
        self.lines = tuple(chosen[key] for key in sorted(chosen))
        self._by_case: dict[tuple[str, str], list[BaselineLine]] = {}
        for line in self.lines:
            self._by_case.setdefault((line.suite, line.case), []).append(line)

    def usual(self, identity: CaseIdentity) -> Usual:
        """The past of a case, all runs together."""
        recorded = self._by_case.get((identity.suite, identity.case), [])
        own = [line for line in recorded if line.agent == identity.agent]
        same = [line for line in own if line.content == identity.content]
        found = counting([line for line in same if line.evaluators == identity.evaluators])
        if not found:
            return Usual(None, _why_unknown(identity, recorded, own, same))
        trials, passes = (sum(getattr(line, name) for line in found) for name in ("trials", "passes"))
        score = Spread.pooled(line.score for line in found)
        past = Past(trials, passes, *((None, None) if score is None else (score.mean, score.deviation)))
        spreads = {name: Spread.pooled(getattr(line, name) for line in found) for name in SPREADS[1:]}
        return Usual(past, "", len({line.run for line in found}), found[-1].since, **spreads)

    def since(self, identity: CaseIdentity) -> str:
        """The mark that a further line about the case has to carry."""
        return self.usual(identity).since

    def text(self) -> str:
        return "".join(write_line(line) for line in self.lines)


def counting(lines: Sequence[BaselineLine]) -> list[BaselineLine]:
    """The lines about one case that count: those since it was last declared to be another than before."""
    latest = max((line.since for line in lines), default="")
    return [line for line in lines if line.since == latest]


def _why_unknown(
    identity: CaseIdentity,
    recorded: Sequence[BaselineLine],
    own: Sequence[BaselineLine],
    same: Sequence[BaselineLine],
) -> str:
    if same:
        return CHANGED_EVALUATORS
    if own:
        return CHANGED_CASE
    if recorded:
        return f"it was recorded with the agent {recorded[-1].agent} only, not with {identity.agent}"
    return NEW


def baseline_path(suite: str | Path | None) -> Path:
    """Where the baseline of a suite stands: beside its file, else in the working folder."""
    if suite is None:
        return Path(PROJECT)
    path = Path(suite)
    return path.with_name(path.stem + BASELINES)


def read_baseline(path: Path) -> Baseline:
    """The baseline in a file; one that is damaged is refused with the place, and left as it is."""
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadBaseline(f"{path}: is not UTF-8 text (byte {error.start}); restore it from git") from None
    except OSError as error:
        raise BadBaseline(f"{path}: the baseline cannot be read: {error.strerror or error}") from None
    return Baseline(_lines(path, text))


def _lines(path: Path, text: str) -> Iterable[BaselineLine]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            yield parse_line(line)
        except ValueError as error:
            raise BadBaseline(f"{path}:{number}: {error}") from None


def parse_line(text: str) -> BaselineLine:
    """One line; raises `ValueError` that says what is wrong with it."""
    if text.startswith(("<<<<<<<", "=======", ">>>>>>>", "|||||||")):
        raise ValueError(
            "is a mark of a merge that git left to you; keep the lines of both sides (with "
            "`*.baseline.jsonl merge=union` in .gitattributes git does that itself)"
        )
    if len(text) > LONGEST_LINE:
        raise ValueError("is longer than any line of a baseline; restore the file from git")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError(
            "is not a whole line of a baseline; the file was cut off or edited, restore it from git"
        ) from None
    if not isinstance(data, dict):
        raise ValueError("is no line of a baseline, which is an object; restore the file from git")
    return _checked(data)


def _checked(data: dict[str, Json]) -> BaselineLine:
    version = data.pop("v", None)
    if isinstance(version, int) and version > VERSION:
        raise ValueError(
            f"was written by a newer Proctor (baseline version {version}, this one knows {VERSION}); update it"
        )
    if version != VERSION:
        raise ValueError(f'has no version: each line begins with {{"v": {VERSION}, ...')
    for name in data:
        if name not in NAMES:
            raise ValueError(f"{name!r} is not a known key{nearest(name, NAMES)}")
    made = {name: _typed(name, data[name]) for name in NAMES if name in data}
    missing = [field.name for field in fields(BaselineLine) if field.name not in made and _is_required(field)]
    if missing:
        raise ValueError(f"has no {missing[0]!r}; restore the file from git")
    if not 0 <= made["passes"] <= made["trials"] or made["trials"] < 1:
        raise ValueError(f"{made['passes']} passes of {made['trials']} trials cannot have been recorded")
    return BaselineLine(**made)


def _is_required(field: Any) -> bool:
    return field.name not in (*SPREADS, "since")


def _typed(name: str, value: Json) -> Any:
    if name in ("trials", "passes"):
        if not isinstance(value, int) or isinstance(value, bool):
            raise ValueError(f"{name} must be a whole number, not {show(value, 60)}")
        return value
    if name in SPREADS:
        numbers = isinstance(value, list) and all(isinstance(n, int | float) and math.isfinite(n) for n in value)
        if not numbers or len(value) != 3 or not isinstance(value[0], int) or value[0] < 1 or value[2] < 0:
            raise ValueError(f"{name} must be [how many, mean, standard deviation], not {show(value, 60)}")
        return Spread(value[0], float(value[1]), float(value[2]))
    if not isinstance(value, str):
        raise ValueError(f"{name} must be text, not {show(value, 60)}")
    return value


def write_line(line: BaselineLine) -> str:
    data: dict[str, Json] = {"v": VERSION}
    for name in NAMES:
        value = getattr(line, name)
        if isinstance(value, Spread):
            data[name] = [value.count, _short(value.mean), _short(value.deviation)]
        elif value is not None and value != "":
            data[name] = value
    for name in ("suite", "case", "agent"):  # may be empty, and are needed
        data.setdefault(name, "")
    return json.dumps(data, separators=(",", ":")) + "\n"


def _short(number: float) -> float:
    return float(f"{number:.6g}")


def write_baseline(path: Path, baseline: Baseline) -> bool:
    """Write the file whole or not at all; says whether anything changed."""
    text = baseline.text()
    if path.is_file() and path.read_bytes() == text.encode():
        return False
    with whole_file(path) as draft:
        draft.write_text(text, encoding="utf-8", newline="\n")
    return True


def lines_of(groups: Mapping[CaseIdentity, Sequence[Any]], run: str) -> list[BaselineLine]:
    """One line for each case that passed or failed in a run; trials are summaries of any outcome."""
    lines = []
    for identity, trials in groups.items():
        settled = [trial for trial in trials if trial.outcome in ("passed", "failed")]
        if settled:
            lines.append(
                BaselineLine(
                    **{field.name: getattr(identity, field.name) for field in fields(CaseIdentity)},
                    run=run,
                    trials=len(settled),
                    passes=sum(trial.outcome == "passed" for trial in settled),
                    score=Spread.of(trial_score(trial) for trial in settled),
                    seconds=Spread.of(trial.duration_ms / 1000 for trial in settled),
                    usd=Spread.of(trial.cost_usd for trial in settled),
                    tokens=Spread.of(trial.tokens for trial in settled),
                )
            )
    return lines


def trial_score(trial: Any) -> float | None:
    """The mean of the scores that decide a trial; `None` where none of them is a number."""
    values = [row.value for row in trial.scores if row.gates and row.value is not None]
    return math.fsum(values) / len(values) if values else None
