"""`proctor baseline`: add a run to the baseline, show it, and remove what no longer counts."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import click

from proctor.base.errors import UsageError
from proctor.base.git import git_state
from proctor.cases.suite import Suite
from proctor.cli.help_pages import DocumentedGroup, option
from proctor.cli.options import json_option, store_option
from proctor.cli.output import say, say_json
from proctor.cli.selection import run_argument
from proctor.cli.suites import load_suites
from proctor.config import read_configuration
from proctor.gate.baseline import (
    Baseline,
    BaselineUpdate,
    CaseBaseline,
    SampleStats,
    baseline_path,
    read_baseline,
    update_baseline,
    write_baseline,
)
from proctor.reporting.wording import plural
from proctor.results.store.store import Store
from proctor.running.gate_trials import case_identities
from proctor.running.plan import make_plan
from proctor.running.settings import NO_OPTIONS

ATTRIBUTES = "*.baseline.jsonl merge=union"
file_option = click.option(
    "--baseline",
    "file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Use this file (default: the *.baseline.jsonl file next to each suite).",
)


@click.group(
    "baseline", cls=DocumentedGroup, examples=("proctor baseline accept last", "proctor baseline show suite.yaml")
)
def command() -> None:
    """Manage the baseline: a text file next to each suite with how often each case passed. Commit it to git."""


@command.command("accept", examples=("proctor baseline accept last",))
@run_argument
@click.option(
    "--restart", is_flag=True, help="Start the baselines of the run's cases again; earlier runs no longer count."
)
@click.option(
    "--restart-case",
    "restart_cases",
    metavar="ID",
    multiple=True,
    help="Start the baseline of this case again (repeatable).",
)
@click.option("--reason", metavar="TEXT", default="", help="Why this run is accepted; stored with each case.")
@file_option
@json_option
@store_option
def accept_run(
    run_id: str,
    restart: bool,
    restart_cases: tuple[str, ...],
    reason: str,
    file: Path | None,
    as_json: bool,
    store: str | None,
) -> int:
    """Add RUN to the baselines of its suites.

    RUN is an id, the beginning of one, a name, last or last~1 (default: last). Baselines of cases that regressed or
    improved in a gated run start again with this run.
    """
    configuration = read_configuration()
    run = Store(configuration.store(store), create=False).find_run(run_id)
    configured = configuration.values.get("baseline")
    target = file or (Path(configured) if configured else None)
    done = update_baseline(run, target, restart=restart, restart_cases=restart_cases, reason=reason)
    if as_json:
        rows = [{**{name: getattr(item, name) for name in _JSON_FIELDS}, "path": str(item.path)} for item in done]
        say_json("accepted-row", rows)
        return 0
    for item in done:
        say(_update_text(run.id, item))
    _explain_merging([item.path for item in done if item.created])
    return 0


_JSON_FIELDS = ("cases", "trials", "restarted", "created", "changed")


def _update_text(run: str, item: BaselineUpdate) -> str:
    if not item.changed:
        return f"{item.path}: already has run {run}; nothing changed"
    restarted = f"; {plural(item.restarted, 'case')} restarted" if item.restarted else ""
    return f"{item.path}: {plural(item.cases, 'case')}, {plural(item.trials, 'trial')} of run {run} added{restarted}"


def _explain_merging(created: list[Path]) -> None:
    """Print a hint about .gitattributes when a file is new and git would not merge it automatically."""
    if not created or git_state(Path.cwd()) is None or _merges_by_union(created[0]):
        return
    say(
        f"hint: add the line `{ATTRIBUTES}` to .gitattributes, so that git merges baselines without conflicts",
        err=True,
    )


def _merges_by_union(path: Path) -> bool:
    try:
        words = ["git", "check-attr", "merge", "--", path.name]
        folder = path.resolve().parent
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.SubprocessError):
        return True
    return done.stdout.strip().endswith(": union")


@command.command("show", examples=("proctor baseline show suite.yaml",))
@click.argument("paths", nargs=-1, metavar="[SUITES|FILES]...")
@file_option
@json_option
def show(paths: tuple[str, ...], file: Path | None, as_json: bool) -> int:
    """Show how often each case passed, over all runs that count.

    Name suites or *.baseline.jsonl files; by default, all suites in the current folder.
    """
    rows = []
    for path in _files(paths, file):
        rows += [_row(path, case) for case in read_baseline(path).cases()]
    if as_json:
        say_json("baseline-row", [data for data, _ in rows])
        return 0
    if not rows:
        say("the baseline is empty")
    width = max((len(f"{data['suite']}/{data['case']}") for data, _ in rows), default=0)
    for data, text in rows:
        say(f"{data['suite'] + '/' + data['case']:<{width}}  {text}")
    return 0


def _files(paths: tuple[str, ...], file: Path | None) -> list[Path]:
    """The baseline files: the one that `--baseline` or the settings name, those of `paths`, or all of this folder."""
    if file is not None or not paths:
        configured = file or read_configuration().values.get("baseline")
        if configured:
            return [Path(configured)]
    files: list[Path] = []
    for path in paths:
        if path.endswith(".baseline.jsonl"):
            files.append(Path(path))
        else:
            files += [baseline_path(suite.path) for suite in _suites((path,))]
    if not paths:
        files = [baseline_path(suite.path) for suite in _suites(())]
    existing = [path for path in dict.fromkeys(files) if path.is_file()]
    if not existing:
        raise UsageError("no baseline yet; run `proctor test`, then `proctor baseline accept`")
    return existing


def _suites(paths: tuple[str, ...]) -> list[Suite]:
    return load_suites(paths or [Path()])


def _row(path: Path, case: CaseBaseline) -> tuple[dict[str, Any], str]:
    record, rate = case.record, case.pass_rate
    assert record is not None and rate is not None, "cases of a file have lines in it"
    data = {
        "file": str(path),
        "suite": case.identity.suite,
        "case": case.identity.case,
        "agent": case.identity.agent,
        "content": case.identity.content,
        "evaluators": case.identity.evaluators,
        "trials": record.trials,
        "passes": record.passes,
        "rate": [rate.low, rate.mean, rate.high],
        "runs": list(case.runs),
        "since": case.since or None,
        "reason": case.reason or None,
        "score": _statistics(case.score),
        "seconds": _statistics(case.seconds),
        "usd": _statistics(case.usd),
        "tokens": _statistics(case.tokens),
    }
    parts = [f"{record.passes}/{record.trials} passed [{rate.low:.0%}, {rate.high:.0%}]"]
    if case.score is not None:
        parts.append(f"score {case.score.mean:.2f} ± {case.score.deviation:.2f}")
    if case.seconds is not None:
        parts.append(f"{case.seconds.mean:.2f}s")
    if case.usd is not None:
        parts.append(f"${case.usd.mean:.4f}")
    parts.append(f"{plural(len(case.runs), 'run')}, the latest {case.runs[-1]}")
    parts.append(case.identity.agent)
    if case.reason:
        parts.append(f'accepted: "{case.reason}"')
    return data, "  ".join(parts)


def _statistics(values: SampleStats | None) -> dict[str, Any] | None:
    return None if values is None else {"count": values.count, "mean": values.mean, "deviation": values.deviation}


@command.command(
    "prune",
    short_help="Remove lines that no longer count.",
    examples=("proctor baseline prune suite.yaml --dry-run",),
)
@click.argument("paths", nargs=-1, metavar="[SUITES]...")
@click.option("--agent", metavar="REF", help="Use this agent instead of the one the suite names.")
@option(
    "--keep",
    group="",
    type=click.IntRange(min=1),
    metavar="N",
    default=50,
    help="Keep the latest N runs per case (default: 50).",
)
@click.option("--dry-run", is_flag=True, help="Show what would be removed, without changing the file.")
@file_option
def prune(paths: tuple[str, ...], agent: str | None, keep: int, dry_run: bool, file: Path | None) -> int:
    """Remove lines that no longer count: those of removed or changed cases, and all but the latest runs per case."""
    suites = _suites(paths)
    current = set(case_identities(make_plan(suites, NO_OPTIONS, agent=agent)).values())
    names = {suite.name for suite in suites}
    for path in _files(paths, file):
        known = read_baseline(path)
        # The cases of a suite that was not named are not known here.
        counting = {line.key: line for line in known.lines if line.suite not in names}
        for identity in current:
            lines, _ = known.lines_for(identity)
            counting.update({line.key: line for line in lines[-keep:]})
        rest = list(counting.values())
        removed = len(known.lines) - len(rest)
        if removed and not dry_run:
            write_baseline(path, Baseline(rest))
        say(f"{path}: {plural(removed, 'line')} {'would be removed' if dry_run else 'removed'}, {len(rest):,} kept")
    return 0
