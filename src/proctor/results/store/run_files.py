"""A run as one JSON Lines file: export, import into a store, and reading without importing.

The first line has the facts about the run, and the last one the number of trials, so that an incomplete file is
detected. A case is written once, before its first trial.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import sys
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from proctor.base.atomic_write import atomic_write
from proctor.base.errors import ProctorError, StoreError, UsageError, one_line
from proctor.base.json_data import Json, to_json
from proctor.base.own_files import EXPORTED_RUN
from proctor.cases.encoding import decode_foreign_case, dumps, encode_case
from proctor.cases.suite import Case
from proctor.plugins import RunFormat, load, plugins
from proctor.results.masking import TrialMasker
from proctor.results.run import Run, RunStatus
from proctor.results.score import Score
from proctor.results.store.encoding import (
    STRICT_CODEC,
    TRIAL_COLUMNS,
    ended_early,
    header_to_json,
    run_from_json,
    trial_to_json,
    with_masked,
)
from proctor.results.store.run_names import LAST, STANDARD_INPUT, validate_run_name
from proctor.results.store.store import Store
from proctor.results.store.trace_encoding import MESSAGE_FIELDS, TOOL_DEFINITIONS, span_from_json, span_to_json
from proctor.results.trial import Trial, Trials
from proctor.tracing.spans import Span

VERSION = 1
MAX_LINE = 100_000_000
"""Characters. No trial has more, so a longer line is not from Proctor."""
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
"""Ids become parts of file names, so only these characters are allowed."""
START_BYTES = 4096
"""How much of a file is read to find out what it is."""
FORMAT_HINT = "not a file that `proctor runs export` wrote"


def export_run(run: Run, out: TextIO) -> int:
    """Write a run and return the number of its trials. Secrets that are masked in the store stay masked."""
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


def save_run(run: Run, path: Path) -> None:
    """Write a run to a file; raises `StoreError` if that is not possible."""
    try:
        with atomic_write(path) as unfinished, unfinished.open("w", encoding="utf-8") as out:
            export_run(run, out)
    except OSError as error:
        raise StoreError(f"cannot write the run to {path}: {error.strerror or error}") from None


def import_run(store: Store, lines: Iterable[str], place: str, *, keep_secrets: bool = False) -> tuple[Run, bool]:
    """Store the run of a file, completely or not at all; returns the run and whether it is new.

    A stored run is never overwritten. Secrets are masked as in a run of this machine, because files come from anywhere.
    """
    reader = RunReader(lines, place)
    return _add_run(store, reader.run, reader.trials(), place, keep_secrets=keep_secrets)


def import_file(store: Store, reference: str, *, keep_secrets: bool = False) -> tuple[Run, bool]:
    """Store the run of a file that Proctor or another tool wrote, like `import_run`; `-` is standard input."""
    run_format = _find_run_format(reference)
    if run_format is None:
        with read_lines(reference) as lines:
            return import_run(store, lines, display_name(reference), keep_secrets=keep_secrets)
    run = load(run_format.read)(Path(reference))
    return _add_run(store, run, iter(run.trials), reference, keep_secrets=keep_secrets)


def _find_run_format(reference: str) -> RunFormat | None:
    """The format of another tool that a file is in."""
    path = Path(reference)
    if reference == STANDARD_INPUT or not path.is_file():
        return None
    with path.open("rb") as file:
        start = file.read(START_BYTES).decode("utf-8", "replace")
    if EXPORTED_RUN in start.partition(":")[0]:  # ours, and no need to look for the plugins of other packages
        return None
    formats = (item for plugin in plugins() for item in plugin.run_formats)
    return next((item for item in formats if item.recognises(path.name, start)), None)


def _add_run(store: Store, run: Run, trials: Iterator[Trial], place: str, *, keep_secrets: bool) -> tuple[Run, bool]:
    known = next((known for known in store.runs() if known.id == run.id), None)
    if known is not None:
        count = sum(1 for _ in trials)
        if count != len(known.summaries) or known.started_at != run.started_at:
            raise UsageError(
                f"{place}: {store.folder} already has another run with the id {run.id}; nothing was imported"
            )
        return known, False
    masker = TrialMasker()
    run.trials = Trials(lambda _: trials if keep_secrets else map(masker.trial, trials))
    store.add_whole_run(run)
    return store.find_run(run.id), True


class RunReader:
    """Reads an exported run line by line; raises `UsageError` with the line of the first problem."""

    def __init__(self, lines: Iterable[str], place: str) -> None:
        self._place = place
        self._lines = enumerate(lines, 1)
        self._cases: dict[int, Case] = {}
        number, data = next(self._records(), (1, {}))
        version = data.get(EXPORTED_RUN)
        if not isinstance(version, int) or isinstance(version, bool):
            raise self._wrong(number, FORMAT_HINT)
        if version > VERSION:
            raise self._wrong(number, "written by a newer version of Proctor; update Proctor to read it")
        try:
            self.run = _run(data)
        except ProctorError as error:
            raise self._wrong(number, f"cannot read the facts about the run: {error}") from None
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise self._wrong(number, f"cannot read the facts about the run: {one_line(error)}") from None

    def trials(self) -> Iterator[Trial]:
        """The trials, once; raises `UsageError` if the file is incomplete."""
        count = 0
        for number, data in self._records():
            if "end" in data:
                if data["end"] != count:
                    raise self._wrong(number, f"the file has {count:,} trials instead of {data['end']}")
                return
            try:
                trial = self._take(data)
            except Exception as error:  # a file from anywhere may hold anything
                raise self._wrong(number, f"cannot read the line: {one_line(error)}") from None
            if trial is not None:
                count += 1
                yield trial
        raise UsageError(f"{self._place} is incomplete: it ends after {count:,} trials, without the last line")

    def _take(self, data: Mapping[str, Any]) -> Trial | None:
        if "content" in data and "case" in data and "suite" not in data:
            self._cases[data["case"]] = decode_foreign_case(data["content"])
            return None
        return _trial_from_json(data, self._cases[data["case"]])

    def _records(self) -> Iterator[tuple[int, dict[str, Any]]]:
        for number, line in self._lines:
            if not line.strip():
                continue
            if len(line) > MAX_LINE:
                raise self._wrong(number, "the line is too long")
            try:
                data = json.loads(line)
            except (ValueError, RecursionError):
                hint = FORMAT_HINT if number == 1 else "not valid JSON; the file is incomplete or damaged"
                raise self._wrong(number, hint) from None
            if not isinstance(data, dict):
                raise self._wrong(number, FORMAT_HINT)
            yield number, data

    def _wrong(self, number: int, why: str) -> UsageError:
        return UsageError(f"{self._place}:{number}: {why}")


class _TemporaryStore(Store):
    """A store in a temporary folder, for the run of a file; removed when it is closed."""

    def __init__(self) -> None:
        folder = tempfile.mkdtemp(prefix="proctor-")
        self._remove = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        super().__init__(Path(folder))
        self.location = None

    def close(self) -> None:
        super().close()
        self._remove()


def is_file_name(reference: str) -> bool:
    """Whether a reference to a run is a file, or `-` for standard input, and not an id or a name."""
    return reference == STANDARD_INPUT or reference.endswith(".jsonl") or "/" in reference or "\\" in reference


def open_run(folder: Path, reference: str) -> tuple[Store, Run]:
    """The run that a user names, and its store: the one in `folder`, or a temporary one for an exported file.

    The `store` of a run from a file is None.
    """
    if is_file_name(reference):
        return _open_file(reference)
    try:
        store = Store(folder, create=False)
        return store, store.find_run(reference)
    except StoreError:
        if Path(reference).is_file():
            return _open_file(reference)
        raise


def open_run_reference(folder: Path, reference: str) -> tuple[Run, str | None]:
    """A run and, after an @, one of its agents: `last`, or `last@careful`.

    The name of an agent follows the last @, unless the whole text is the name of a file.
    """
    name, sign, agent = reference.rpartition("@")
    if not sign or not name or Path(reference).is_file():
        return open_run(folder, reference)[1], None
    return open_run(folder, name)[1], agent


def _open_file(reference: str) -> tuple[Store, Run]:
    store = _TemporaryStore()
    try:
        run, _ = import_file(store, reference)
    except BaseException:
        store.close()
        raise
    return store, run


def display_name(reference: str) -> str:
    """The name of a file in messages."""
    return "standard input" if reference == STANDARD_INPUT else reference


class read_lines:  # noqa: N801  used as a function
    """A context manager with the lines of a file or of standard input, which is not closed.

    Raises `UsageError` if the file cannot be read or is not UTF-8.
    """

    def __init__(self, reference: str) -> None:
        self._reference = reference
        self._file: TextIO | None = None

    def __enter__(self) -> Iterator[str]:
        if self._reference == STANDARD_INPUT:
            return self._decoded(sys.stdin)
        try:
            self._file = Path(self._reference).open(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise UsageError(f"cannot read {self._reference}: {getattr(error, 'strerror', None) or error}") from None
        return self._decoded(self._file)

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def _decoded(self, lines: TextIO) -> Iterator[str]:
        try:
            while line := lines.readline(MAX_LINE + 1):
                yield line
        except (UnicodeDecodeError, OSError) as error:
            raise UsageError(f"cannot read {display_name(self._reference)}: {error}; {FORMAT_HINT}") from None


def _run(data: Mapping[str, Any]) -> Run:
    """The run in the first line, without its trials."""
    started_at, finished_at = float(data["started_at"]), data.get("finished_at")
    ended = (RunStatus.FINISHED, RunStatus.INTERRUPTED)
    status = RunStatus(data["status"]) if data["status"] in ended else RunStatus.INTERRUPTED
    run_id, plan, name = data["id"], data.get("plan", ""), data.get("name", "")
    if not all(isinstance(text, str) for text in (run_id, plan, name)):
        raise ValueError("its id, plan and name must be strings")
    if not _ID.fullmatch(run_id) or run_id == LAST:
        raise ValueError("its id is not one that Proctor creates")
    if name:
        validate_run_name(name)
    if not math.isfinite(started_at):
        raise ValueError("started_at is not a time")
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
    for suite in run.suites:
        if b"\0" in os.fsencode(suite.path or ""):  # which raises `ValueError` for what no name of a file can have
            raise ValueError(f"{suite.path!r} is not the name of a file")
    if any("" not in keys for keys in run.scoring_keys.values()):
        raise ValueError("the evaluator_keys of a suite have no general one")
    # A file may come from anywhere: the command that a report shows to re-run a case must not come from it.
    untrusted = ("agent", "agents", "arms", "command")
    run.options = {key: value for key, value in run.options.items() if key not in untrusted}
    return run


def _trial_to_json(trial: Trial, case: int) -> dict[str, Json]:
    """The trial as one line: the columns of the store, the other fields as `content`, and scores as lists."""
    data: dict[str, Json] = {"case": case}
    data |= {name: to_json(getattr(trial, name)) for name in TRIAL_COLUMNS.names}
    data |= {"content": trial_to_json(trial), "scores": [_score_to_json(score) for score in trial.scores]}
    if trial.spans:
        data["spans"] = [to_json(span_to_json(span)) for span in trial.spans]
    return data


def _trial_from_json(data: Mapping[str, Any], case: Case) -> Trial:
    content = {**data["content"], **{name: data[name] for name in TRIAL_COLUMNS.names if name in data}}
    scores = tuple(_score_from_json(score) for score in data["scores"])
    spans = tuple(_checked_span(span) for span in data.get("spans") or ())
    early = ended_early(content, has_scores=bool(scores))
    return STRICT_CODEC.decode(Trial, with_masked(content), case=case, scores=scores, spans=spans, ended_early=early)


def _checked_span(data: Mapping[str, Any]) -> Span:
    """The span of a row from anywhere; raises `ValueError` or `TypeError` if a field has a wrong type."""
    span = span_from_json(data)
    messages = {name: getattr(span, name) for name in (*MESSAGE_FIELDS, TOOL_DEFINITIONS) if name in data}
    return STRICT_CODEC.decode(type(span), {name: data[name] for name in data if name not in messages}, **messages)


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
"""The meaning of the positions of a score in a file. A new field goes to the end, where older versions ignore it."""


def _score_to_json(score: Score) -> list[Json]:
    values = {name: not score.report_only if name == GATES else to_json(getattr(score, name)) for name in SCORE_FIELDS}
    return list({**values, "details": values["details"] or None, "duration_ms": round(score.duration_ms, 3)}.values())


def _score_from_json(row: list[Json]) -> Score:
    data = dict(zip(SCORE_FIELDS, row, strict=False))
    report_only = not data.pop(GATES)
    return STRICT_CODEC.decode(Score, {**data, "details": data.get("details") or {}}, report_only=report_only)
