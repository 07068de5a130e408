"""One file for each execution of an agent.yaml: its report, and all that one has to know to compare it with another."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TextIO

from proctor.base.atomic_write import whole_file
from proctor.base.environment import expand_with, variables_in
from proctor.base.errors import InvalidSuite, StoreError, one_line
from proctor.base.json_data import Json, canonical, plain
from proctor.base.masking import is_masked, is_secret_name, mask_data
from proctor.base.source import parse, read_text
from proctor.cases.formats.holodeck import EXTENSION, NAME
from proctor.cases.formats.holodeck.agent_file import KEPT
from proctor.cases.formats.holodeck.configuration import ConfigFile, config_files, execution_of, provider_defaults
from proctor.cases.formats.holodeck.variables import CONCEALED
from proctor.cases.ids import UniqueIds, slug
from proctor.cases.suite import Suite
from proctor.compat.holodeck.config import PromptVersion, prompt_version_of
from proctor.compat.holodeck.driven_agent import Seen
from proctor.compat.holodeck.result_builder import NOTHING_SEEN, Tally, framed, results_of
from proctor.compat.holodeck.test_results import TestReport
from proctor.declared.description import MAX_TOKENS, TEMPERATURE
from proctor.judging.choosing import DEFAULT, first_named, judge_record
from proctor.results.run import Run
from proctor.results.verdict import RunVerdict
from proctor.running.settings import RunOptions, limits_for
from proctor.running.suite_judges import judge_sources
from proctor.version import __version__

UNFILLED = ("env", "headers")
"""Blocks whose variables may hold anything: they stay variables."""


def secrets_in(value: Json, *, secret: bool = False, wide: bool = False) -> Iterator[str]:
    """What data holds under the names of secrets: texts, and what the variables stand for that are named there."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from secrets_in(item, secret=is_secret_name(str(key), wide=wide), wide=wide)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from secrets_in(item, secret=secret, wide=wide)
    elif isinstance(value, str) and secret:
        variables = variables_in(value)
        yield from (os.environ[name] for name in variables if name in os.environ)
        if not variables and value != CONCEALED and not is_masked(value):
            yield value


def mask_results(results: list[Json], known: Iterable[str] = ()) -> list[Json]:
    """Results without secrets; also where one repeats what another holds under the name of a secret."""
    masked: list[Json] = mask_data(results, [*known, *secrets_in(results)])
    return masked


def filled(value: Json) -> Json:
    """Data with the variables of the environment that hold no secret filled in."""
    if isinstance(value, Mapping):
        return {
            key: item if key in UNFILLED or is_secret_name(key, wide=True) else filled(item)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [filled(item) for item in value]
    if not isinstance(value, str) or "${" not in value:
        return value
    return expand_with(value, lambda name: None if is_secret_name(name, wide=True) else os.environ.get(name))


class Snapshot:
    """The text of an agent's file when a run begins; what it says is worked out when a record is written."""

    def __init__(self, suite: Suite, execution: Mapping[str, Json]) -> None:
        self._suite = suite
        self._execution = dict(execution)
        self._path = suite.path or Path("agent.yaml")
        self._text = _read(suite.path)
        self._tests = _read(self._tests_file()) if "test_cases_file" in self._text else ""
        self._configs, _ = config_files(suite.base or Path.cwd())
        self._model = _resolved_model(suite, self._configs)

    def resolved(self) -> tuple[dict[str, Json], frozenset[str]]:
        """The whole file without secrets, its variables filled in, its model and its execution as in force.

        With the secrets of the file, so that they can be masked in answers and errors that repeat one.
        """
        written = _parsed(self._path, self._text)
        data = dict(written) if isinstance(written, Mapping) else {"name": self._suite.name, **self._kept}
        if self._tests:
            tests = _parsed(self._path, self._tests)
            data["test_cases"] = tests.get("test_cases") if isinstance(tests, Mapping) else tests
        if self._model is not None:
            data["model"] = {**self._model, **_block(data.get("model"))}
        data["execution"] = self._execution
        found = {key: frozenset(secrets_in({key: value}, wide=_wide(key))) for key, value in data.items()}
        elsewhere = secrets_in([self._model, *(file.data for file in self._configs)], wide=True)
        known = frozenset(elsewhere).union(*found.values())
        shown = {key: mask_data({key: filled(value)}, known, wide=_wide(key)) for key, value in plain(data).items()}
        return {key: value[key] for key, value in shown.items()}, known

    @property
    def _kept(self) -> Mapping[str, Json]:
        return _block(self._suite.extra.get(EXTENSION))

    def _tests_file(self) -> Path | None:
        named = _block(_parsed(self._path, self._text)).get("test_cases_file")
        return self._path.parent / filled(named) if isinstance(named, str) else None


def _resolved_model(suite: Suite, files: list[ConfigFile]) -> dict[str, Json] | None:
    """The model with what configuration files say of its provider, and the defaults for the rest."""
    kept: Any = _block(suite.extra.get(EXTENSION))
    block = kept.get("model")
    if not isinstance(block, Mapping):
        return None
    return {"temperature": TEMPERATURE, "max_tokens": MAX_TOKENS, **provider_defaults(files)(block), **plain(block)}


def _wide(key: str) -> bool:
    """Tests and metrics may speak of keys and tokens; whatever describes the agent means them."""
    return key in KEPT


def _block(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}


def _read(path: Path | None) -> str:
    try:
        return read_text(path) if path is not None and path.is_file() else ""
    except (InvalidSuite, ValueError, OSError):
        return ""


def _parsed(path: Path, text: str) -> Json:
    try:
        return parse(path, text) if text else None
    except InvalidSuite:
        return None


FOLDER = "results"
"""Within the store."""
AT_ONCE = 50
"""Results that are searched for secrets together."""
GIT_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class EvalRunMetadata:
    """What a report was made with."""

    agent_config: Mapping[str, Json]
    """The whole agent.yaml as it was in force, secrets aside."""
    prompt_version: PromptVersion | None
    holodeck_version: str
    cli_args: tuple[str, ...]
    git_commit: str | None
    run_id: str
    agent: str
    agent_fingerprint: str
    settings: Mapping[str, Json]
    """What an agent.yaml cannot say: repeats, retries, who judges."""
    interrupted: bool = False


class Recorder:
    """Takes down what a run of one suite is made with before it begins, and writes it with what came of it."""

    def __init__(
        self,
        suite: Suite,
        execution: Mapping[str, Json],
        *,
        settings: Mapping[str, Json] | None = None,
        arguments: Sequence[str] = (),
        place: str = "",
    ) -> None:
        self._suite = suite
        self._execution = dict(execution)
        self._settings = dict(settings or {})
        self._arguments = tuple(arguments)
        self._place = place or slug(suite.name) or "agent"
        self._snapshot = Snapshot(suite, execution)
        self._prompt = prompt_version_of(suite)

    def took_part(self, run: Run) -> bool:
        """Whether there is anything to record."""
        return any(summary.suite == self._suite.name for summary in run.summaries)

    def described(self, report: TestReport, run: Run) -> TestReport:
        """The report with what it was made with in its `environment`."""
        known = {
            "execution_config": canonical(plain(self._execution)),
            "prompt_version": None if self._prompt is None else self._prompt.version,
            "agent_fingerprint": self._info(run)[1],
            "run": run.id,
        }
        told = {name: value for name, value in known.items() if value}
        return replace(report, environment={**report.environment, **told})

    def keep(
        self, run: Run, verdict: RunVerdict, folder: Path, *, warnings: Sequence[str] = (), seen: Seen = NOTHING_SEEN
    ) -> Path:
        """Write the record to `folder`, whole or not at all; raises `StoreError`."""
        target = folder / self._place / f"{run.id}.json"
        try:
            with whole_file(target) as draft, draft.open("x", encoding="utf-8", newline="\n") as out:
                self._write(out, run, verdict, warnings, seen)
                out.flush()
                os.fsync(out.fileno())
        except OSError as error:
            raise StoreError(f"the record of the run could not be written to {target}: {one_line(error)}") from error
        return target

    def _write(self, out: TextIO, run: Run, verdict: RunVerdict, warnings: Sequence[str], seen: Seen) -> None:
        """A few results at a time, so that a run of any size needs little memory."""
        config, known = self._snapshot.resolved()
        tally, separator = Tally(), "\n"
        out.write('{"report": {"results": [')
        results = results_of(run, self._suite, seen)
        while some := [plain(tally.counted(result)) for result in itertools.islice(results, AT_ONCE)]:
            out.write(separator + ",\n".join(json.dumps(result) for result in mask_results(some, known)))
            separator = ",\n"
        report = framed(run, verdict, self._suite, str(self._suite.path), warnings, tally.summary(run), [])
        frame = self.described(report, run).model_dump()
        del frame["results"]
        out.write("\n]")
        for name, value in frame.items():
            safe = value if name == "summary" else mask_data(value, known)
            out.write(f",\n{json.dumps(name)}: {json.dumps(safe)}")
        metadata = mask_data(plain(self._metadata(run, config)), known)
        out.write(f'}},\n"metadata": {json.dumps(metadata, indent=1)}}}\n')

    def _metadata(self, run: Run, config: Mapping[str, Json]) -> EvalRunMetadata:
        agent, mark = self._info(run)
        return EvalRunMetadata(
            agent_config=config,
            prompt_version=self._prompt,
            holodeck_version=f"proctor {__version__}",
            cli_args=self._arguments,
            git_commit=_git_commit(self._suite.base or Path.cwd()),
            run_id=run.id,
            agent=agent,
            agent_fingerprint=mark,
            settings=self._settings,
            interrupted=run.interrupted,
        )

    def _info(self, run: Run) -> tuple[str, str]:
        found = next((item for item in run.suites if item.name == self._suite.name), None)
        return ("", "") if found is None else (found.agent, found.agent_fingerprint)


def recorders(suites: Sequence[Suite], options: RunOptions, arguments: Sequence[str] | None = None) -> list[Recorder]:
    """One for each agent.yaml among the suites that are about to be run; other formats have no such records."""
    places = UniqueIds()
    return [
        _recorder(suite, options, sys.argv[1:] if arguments is None else arguments, places)
        for suite in suites
        if suite.format == NAME
    ]


def _recorder(suite: Suite, options: RunOptions, arguments: Sequence[str], places: UniqueIds) -> Recorder:
    limits = limits_for(options, suite)
    execution = {name: setting.value for name, setting in execution_of(suite).items()}
    execution |= {"llm_timeout": limits.timeout, "parallel_test_cases": limits.parallel}
    judge = first_named(judge_sources(options, suite))
    settings = {
        "repeat": limits.repeat,
        "retries": limits.retries,
        "evaluator_timeout": limits.evaluator_timeout,
        "judge": None if judge.origin == DEFAULT else judge_record(judge.judge),
        "budget_usd": options.budget_usd,
        "fast": options.fast,
    }
    place = places.claim(slug(suite.name) or "agent")
    return Recorder(suite, execution, settings=settings, arguments=arguments, place=place)


def keep_records(kept: Sequence[Recorder], run: Run, verdict: RunVerdict, store: Path) -> tuple[list[Path], list[str]]:
    """Write a record for each suite that took part; what was written, and why something was not."""
    written: list[Path] = []
    failures: list[str] = []
    for recorder in (item for item in kept if item.took_part(run)):
        try:
            written.append(recorder.keep(run, verdict, store / FOLDER))
        except Exception as error:  # a verdict that was reached must not be lost for want of its record
            failures.append(str(error) if isinstance(error, StoreError) else one_line(error))
    return written, failures


def records_of(store: Path, run_id: str) -> list[Path]:
    """The records that a run left in a store, one for each agent.yaml that took part."""
    return sorted((store / FOLDER).glob(f"*/{run_id}.json"))


def _git_commit(folder: Path) -> str | None:
    """What is checked out there, where anything is."""
    try:
        found = subprocess.run(
            ["git", "rev-parse", "HEAD"],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=GIT_SECONDS,
            check=False,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return found.stdout.strip() or None if found.returncode == 0 else None
