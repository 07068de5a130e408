"""A whole run as one JSON Lines file: written, read back into a store, or looked at without one.

The first line tells of the run, the last one how many trials there are, so that a file that was cut off is noticed.
A case stands once, before its first trial.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import sys
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from proctor.base.errors import ProctorError, StoreError, UsageError, one_line
from proctor.base.json_data import Json, to_json
from proctor.base.own_files import EXPORTED_RUN
from proctor.cases.encoding import decode_case, dumps, encode_case
from proctor.cases.suite import Case
from proctor.results.masking import TrialMasker
from proctor.results.run import Run, RunStatus, Score, TrialResult
from proctor.results.store.encoding import (
    STRICT_CODEC,
    TRIAL_COLUMNS,
    ended_early,
    header_to_json,
    run_from_json,
    trial_to_json,
)
from proctor.results.store.run_names import LAST, STANDARD_INPUT, validate_run_name
from proctor.results.store.store import Store
from proctor.results.store.trace_encoding import span_from_json, span_to_json

VERSION = 1
MAX_LINE = 100_000_000
"""Characters: no trial has more, and a file that has is not one of ours."""
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
"""Ids are parts of file names."""
FORMAT_HINT = "it is no file that `proctor runs export` wrote"


def export_run(run: Run, out: TextIO) -> int:
    """Write a run; returns the number of its trials. What is masked in the store stays masked."""
    head = {EXPORTED_RUN: VERSION, "id": run.id, "name": run.name, "started_at": run.started_at}
    rest = {"finished_at": run.finished_at, "status": run.status, "plan": run.plan, "info": header_to_json(run)}
    out.write(dumps(head | rest) + "\n")
    numbers: dict[str, int] = {}
    count = 0
    for trial in run.trials:
        content = encode_case(trial.case)
        if content not in numbers:
            numbers[content] = len(numbers) + 1
            out.write(f'{{"case":{numbers[content]},"content":{content}}}\n')
        out.write(dumps(_trial_to_json(trial, numbers[content])) + "\n")
        count += 1
    out.write(dumps({"end": count}) + "\n")
    return count


def import_run(store: Store, lines: Iterable[str], place: str, *, keep_secrets: bool = False) -> tuple[Run, bool]:
    """Keep the run of a file, all of it or nothing; whether it is new. A run that is there is never overwritten.

    Files come from anywhere: secrets in them are masked as in a run that was made here.
    """
    reader = RunReader(lines, place)
    run = reader.run
    known = next((known for known in store.runs() if known.id == run.id), None)
    if known is not None:
        count = sum(1 for _ in reader.trials())
        if count != len(known.summaries) or known.started_at != run.started_at:
            raise UsageError(f"{place}: run {run.id} is in {store.folder} already and differs; nothing was imported")
        return known, False
    masker = TrialMasker()
    run.trials = reader.trials() if keep_secrets else map(masker.trial, reader.trials())
    store.add_whole_run(run)
    return store.find_run(run.id), True


class RunReader:
    """Reads an exported run line by line; whatever is wrong is said with the line, before anything is kept."""

    def __init__(self, lines: Iterable[str], place: str) -> None:
        self._place = place
        self._lines = enumerate(lines, 1)
        self._cases: dict[int, Case] = {}
        number, data = next(self._records(), (1, {}))
        version = data.get(EXPORTED_RUN)
        if not isinstance(version, int) or isinstance(version, bool):
            raise self._wrong(number, FORMAT_HINT)
        if version > VERSION:
            raise self._wrong(number, "a newer version of Proctor wrote it; update Proctor to read it")
        try:
            self.run = _run(data)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, ProctorError) as error:
            raise self._wrong(number, f"what it says of the run cannot be read: {one_line(error)}") from None

    def trials(self) -> Iterator[TrialResult]:
        """The trials, once; raises `UsageError` where the file ends before its end."""
        count = 0
        for number, data in self._records():
            if "end" in data:
                if data["end"] != count:
                    raise self._wrong(number, f"it has {count:,} trials and should have {data['end']}")
                return
            try:
                trial = self._take(data)
            except Exception as error:  # a file from anywhere may hold anything
                raise self._wrong(number, f"it cannot be read: {one_line(error)}") from None
            if trial is not None:
                count += 1
                yield trial
        raise UsageError(f"{self._place} is cut off after {count:,} trials: its last line is missing")

    def _take(self, data: Mapping[str, Any]) -> TrialResult | None:
        if "content" in data and "case" in data and "suite" not in data:
            self._cases[data["case"]] = decode_case(json.dumps(data["content"]))
            return None
        return _trial_from_json(data, self._cases[data["case"]])

    def _records(self) -> Iterator[tuple[int, dict[str, Any]]]:
        for number, line in self._lines:
            if not line.strip():
                continue
            if len(line) > MAX_LINE:
                raise self._wrong(number, "the line is too long to be read")
            try:
                data = json.loads(line)
            except (ValueError, RecursionError):
                hint = FORMAT_HINT if number == 1 else "it is not valid JSON; the file is cut off or damaged"
                raise self._wrong(number, hint) from None
            if not isinstance(data, dict):
                raise self._wrong(number, FORMAT_HINT)
            yield number, data

    def _wrong(self, number: int, why: str) -> UsageError:
        return UsageError(f"{self._place}:{number}: {why}")


class _TemporaryStore(Store):
    """Holds the run of a file while it is looked at."""

    def __init__(self) -> None:
        folder = tempfile.mkdtemp(prefix="proctor-")
        self._remove = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        super().__init__(Path(folder))
        self.location = None

    def close(self) -> None:
        super().close()
        self._remove()


def is_file_name(wanted: str) -> bool:
    """Whether a run is named by a file, or by `-` for standard input, and not by an id or a name."""
    return wanted == STANDARD_INPUT or wanted.endswith(".jsonl") or "/" in wanted or "\\" in wanted


def open_run(folder: Path, wanted: str) -> tuple[Store, Run]:
    """The run called `wanted` and the store that it is in: the one in `folder`, or one made of an exported file.

    A run of a file says that it has no store.
    """
    if is_file_name(wanted):
        return _opened_file(wanted)
    try:
        store = Store(folder, create=False)
        return store, store.find_run(wanted)
    except StoreError:
        if Path(wanted).is_file():
            return _opened_file(wanted)
        raise


def open_run_reference(folder: Path, wanted: str) -> tuple[Run, str | None]:
    """A run, and the agent that is meant: `last`, or `last@careful` for what one of its agents answered.

    The name of an agent follows the last @, unless the whole is the name of a file.
    """
    name, sign, agent = wanted.rpartition("@")
    if not sign or not name or Path(wanted).is_file():
        return open_run(folder, wanted)[1], None
    return open_run(folder, name)[1], agent


def _opened_file(wanted: str) -> tuple[Store, Run]:
    store = _TemporaryStore()
    try:
        with read_lines(wanted) as lines:
            run, _ = import_run(store, lines, display_name(wanted))
    except BaseException:
        store.close()
        raise
    return store, run


def display_name(wanted: str) -> str:
    return "standard input" if wanted == STANDARD_INPUT else wanted


class read_lines:  # noqa: N801  used as a function
    """The lines of a file, or of standard input, which is not closed; what is no UTF-8 is refused in one sentence."""

    def __init__(self, wanted: str) -> None:
        self._wanted = wanted
        self._file: TextIO | None = None

    def __enter__(self) -> Iterator[str]:
        if self._wanted == STANDARD_INPUT:
            return self._decoded(sys.stdin)
        try:
            self._file = Path(self._wanted).open(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise UsageError(f"{self._wanted} cannot be read: {getattr(error, 'strerror', None) or error}") from None
        return self._decoded(self._file)

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def _decoded(self, lines: TextIO) -> Iterator[str]:
        try:
            while line := lines.readline(MAX_LINE + 1):
                yield line
        except (UnicodeDecodeError, OSError) as error:
            raise UsageError(f"{display_name(self._wanted)} cannot be read: {error}; {FORMAT_HINT}") from None


def _run(data: Mapping[str, Any]) -> Run:
    """The run that the first line is about, without its trials."""
    started_at, finished_at = float(data["started_at"]), data.get("finished_at")
    ended = (RunStatus.FINISHED, RunStatus.INTERRUPTED)
    status = RunStatus(data["status"]) if data["status"] in ended else RunStatus.INTERRUPTED
    run_id, plan, name = data["id"], data.get("plan", ""), data.get("name", "")
    if not all(isinstance(text, str) for text in (run_id, plan, name)):
        raise ValueError("its id, plan and name must be text")
    if not _ID.fullmatch(run_id) or run_id == LAST:
        raise ValueError("its id is none that Proctor gives")
    if name:
        validate_run_name(name)
    if not math.isfinite(started_at):
        raise ValueError("its time is no time")
    run = run_from_json(
        data["info"],
        (),
        STRICT_CODEC,
        id=run_id,
        started_at=started_at,
        finished_at=None if finished_at is None else float(finished_at),
        status=status,
        plan=plan,
        name=name,
    )
    # A file may come from anywhere: the command that repeats a case must name no agent of its choice.
    run.options = {key: value for key, value in run.options.items() if key not in ("agent", "agents")}
    return run


def _trial_to_json(trial: TrialResult, case: int) -> dict[str, Json]:
    """The trial in one line: what the store has in columns, the rest as `content`, scores as lists."""
    data: dict[str, Json] = {"case": case}
    data |= {name: to_json(getattr(trial, name)) for name in TRIAL_COLUMNS.names}
    data |= {"content": trial_to_json(trial), "scores": [_score_to_json(score) for score in trial.scores]}
    if trial.spans:
        data["spans"] = [to_json(span_to_json(span)) for span in trial.spans]
    return data


def _trial_from_json(data: Mapping[str, Any], case: Case) -> TrialResult:
    content = {**data["content"], **{name: data[name] for name in TRIAL_COLUMNS.names if name in data}}
    scores = tuple(_score_from_json(score) for score in data["scores"])
    spans = tuple(span_from_json(span) for span in data.get("spans") or ())
    early = ended_early(content, has_scores=bool(scores))
    return STRICT_CODEC.decode(TrialResult, content, case=case, scores=scores, spans=spans, ended_early=early)


GATES = "gates"
"""The opposite of `Score.report_only`, as exported runs have it."""
SCORE_FIELDS = (
    "evaluator",
    "outcome",
    "value",
    "threshold",
    GATES,
    "turn",
    "fingerprint",
    "reasoning",
    "details",
    "duration_ms",
)
"""What the places of a score mean in a file. A new one goes to the end, where older programs leave it alone."""


def _score_to_json(score: Score) -> list[Json]:
    values = {name: not score.report_only if name == GATES else to_json(getattr(score, name)) for name in SCORE_FIELDS}
    return list({**values, "details": values["details"] or None, "duration_ms": round(score.duration_ms, 3)}.values())


def _score_from_json(row: list[Json]) -> Score:
    data = dict(zip(SCORE_FIELDS, row, strict=False))
    report_only = not data.pop(GATES)
    return STRICT_CODEC.decode(Score, {**data, "details": data.get("details") or {}}, report_only=report_only)
