"""One file for each execution of an agent.yaml: its report, and all that one has to know to compare it with another."""

from __future__ import annotations

import itertools
import json
import os
import secrets
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from proctor.base.errors import StoreError
from proctor.base.json_data import Json, canonical, plain
from proctor.base.names import UniqueIds, slug
from proctor.base.records import record
from proctor.base.references import describe
from proctor.base.secrets import mask_data
from proctor.cases.formats.holodeck import NAME
from proctor.cases.formats.holodeck.configuration import execution_of
from proctor.cases.suite import Suite
from proctor.compat.holodeck.config_snapshot import PromptVersion, Snapshot, mask_results, prompt_version_of
from proctor.compat.holodeck.result_builder import NOTHING_SEEN, Tally, framed, results_of
from proctor.compat.holodeck.test_results import TestReport
from proctor.results.run import Run
from proctor.results.verdict import RunVerdict
from proctor.running.engine.deadline import limits_of
from proctor.running.engine.judges import judge_identity
from proctor.running.options import RunOptions
from proctor.version import __version__

if TYPE_CHECKING:  # what drives agents is not needed to write down what came of it
    from proctor.compat.holodeck.driven_agent import Seen

FOLDER = "results"
"""Within the store."""
AT_ONCE = 50
"""Results that are searched for secrets together."""
GIT_SECONDS = 2.0


@record
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
        draft = target.with_name(f".{run.id}.{secrets.token_hex(4)}.tmp")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with draft.open("x", encoding="utf-8", newline="\n") as out:
                self._write(out, run, verdict, warnings, seen)
                out.flush()
                os.fsync(out.fileno())
            draft.replace(target)
        except OSError as error:
            raise StoreError(f"the record of the run could not be written to {target}: {describe(error)}") from error
        finally:
            with suppress(OSError):
                draft.unlink()
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
    limits = limits_of(options, suite)
    execution = {name: setting.value for name, setting in execution_of(suite).items()}
    execution |= {"llm_timeout": limits.timeout, "parallel_test_cases": limits.parallel}
    settings = {
        "repeat": limits.repeat,
        "retries": limits.retries,
        "evaluator_timeout": limits.evaluator_timeout,
        "judge": judge_identity(options.judge or suite.judge or options.usual_judge),
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
            failures.append(str(error) if isinstance(error, StoreError) else describe(error))
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
