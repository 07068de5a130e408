"""`proctor list`: the evaluators, formats and kinds of agents, with examples of how to write them."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import click
import yaml

from proctor.agents.frameworks import shipped_adapters
from proctor.base.documents import did_you_mean
from proctor.base.errors import UsageError
from proctor.base.installation import pip_command
from proctor.base.json_data import Json, to_json
from proctor.cases.formats import formats as all_formats
from proctor.cli import suggestions
from proctor.cli.help_pages import DocumentedGroup
from proctor.cli.options import json_option
from proctor.cli.output import say, say_json
from proctor.cli.suite_files import WRITABLE_FORMATS
from proctor.evaluators.declaration import FAMILIES, Declaration
from proctor.evaluators.registry import find_declaration, installed_declarations, shipped_declarations
from proctor.plugins import Format, installed_plugins, plugins

AGENT_KINDS = {
    "a Python function, class or object": "app.py:agent",
    "one in an installed package": "package.module:agent",
    "an HTTP endpoint": "http://localhost:8000/ask",
    "an HTTP endpoint with another JSON format": '{"http": {"url": "http://localhost:8000/ask", "text": "reply.text"}}',
    "an OpenAI-compatible chat endpoint": '{"chat": {"base_url": "http://localhost:11434/v1", "model": "qwen3"}}',
    "a program, started for each turn, with JSON on stdin": "cmd:node agent.js",
    "a program that keeps running, one line of JSON per turn": '{"command": ["node", "agent.js"], "session": true}',
    "a program that starts an HTTP service at $PORT": "serve:node server.js",
    "answers as expected: every case must pass": "oracle",
    "answers nothing: every case must fail": "nop",
}
"""The values of `agent:` in a suite and of `--agent`, with an example of each."""


@click.group(
    "list",
    cls=DocumentedGroup,
    examples=("proctor list evaluators", "proctor list evaluators Faithfulness", "proctor list agents"),
)
def command() -> None:
    """List evaluators, formats and kinds of agents, or show one."""


@command.command(
    "evaluators",
    short_help="List the evaluators, or show one with an example.",
    examples=("proctor list evaluators", "proctor list evaluators Faithfulness"),
)
@click.argument("name", required=False, metavar="[NAME]", shell_complete=suggestions.evaluators)
@click.option("--all", "show_all", is_flag=True, help="Also list variants, and names from other tools.")
@json_option
def evaluators(name: str | None, show_all: bool, as_json: bool) -> int:
    """List the evaluators, or show NAME with what it needs, its parameters and an example."""
    if name is not None:
        one = find_declaration(name)
        if as_json:
            say_json("evaluator", _as_data(one))
        else:
            say("\n".join(_description_lines(one)))
        return 0
    known = list(shipped_declarations())
    others = list(installed_declarations())
    if as_json:
        declarations = [item for _, _, item in others if isinstance(item, Declaration)]
        say_json("evaluator", [_as_data(item) for item in (*known, *declarations)])
        return 0
    main = [item for item in known if item.family in FAMILIES and not item.variant_of]
    more = [item for item in known if item not in main]
    for family, title in FAMILIES.items():
        _say_section(title, [_line(item.name, item) for item in main if item.family == family])
    for owner in dict.fromkeys(owner for owner, _, _ in others):
        _say_section(f"From {owner}", [_line(name, item) for known_by, name, item in others if known_by == owner])
    if show_all:
        _say_section("Variants and names from other tools", [_line(item.name, item) for item in more])
    else:
        say(f"\n{len(more)} more variants and names from other tools: proctor list evaluators --all")
    say("\nIn brackets: what an evaluator needs. Parameters and an example: proctor list evaluators NAME")
    return 0


def _as_data(item: Declaration) -> dict[str, Json]:
    return {
        "name": item.name,
        "summary": item.summary,
        "family": item.family,
        "needs": list(_needs(item)),
        "threshold": item.threshold,
        "scope": item.scope,
        "parameters": [to_json(parameter) for parameter in item.parameters],
        "example": item.entry,
    }


def _needs(item: Declaration) -> tuple[str, ...]:
    if item.judge == "none":
        return item.needs
    return (*item.needs, "embeddings" if item.judge == "embeddings" else "judge")


def _line(name: str, item: Declaration | UsageError) -> tuple[str, str]:
    return (name, item.summary + _needs_text(_needs(item)) if isinstance(item, Declaration) else str(item))


def _say_section(title: str, rows: Sequence[tuple[str, str]]) -> None:
    if rows:
        say(f"\n{title}")
        _say_rows(rows)


def _needs_text(needs: Sequence[str]) -> str:
    return f"  [{', '.join(needs)}]" if needs else ""


def _say_rows(rows: Sequence[tuple[str, str]]) -> None:
    """Print two columns, wrapped on a terminal; elsewhere one line per row, so that `grep` works."""
    column = max(len(first) for first, _ in rows) + 2
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    for first, second in rows:
        lines = textwrap.wrap(second, max(20, width - column)) if width else [second]
        for number, line in enumerate(lines):
            say(f"{first if number == 0 else '':<{column}}{line}")


def _description_lines(item: Declaration) -> Iterable[str]:
    yield item.name
    yield f"  {item.summary}"
    yield f"  needs       {', '.join(_needs(item)) or 'only an answer'}"
    yield f"  threshold   {item.threshold:g}"
    yield f"  scores each {item.scope}"
    for number, parameter in enumerate(item.parameters):
        value = "required" if parameter.required else f"default {json.dumps(parameter.default, ensure_ascii=False)}"
        yield f"  {'parameters  ' if number == 0 else ' ' * 12}{parameter.name}: {value}"
    if not item.parameters:
        yield "  parameters  none"
    yield ""
    yield "  in a suite:"
    yield "    evaluators:"
    yield f"      - {_flow(item.entry)}"
    yield "  on the command line:"
    yield f"    proctor test -e {_argument(item.entry)}"


def _flow(example: Json) -> str:
    """An entry of a YAML list, on one line."""
    if isinstance(example, str):
        return example
    text = yaml.safe_dump(example, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10_000)
    return str(text).strip()


def _argument(example: Json) -> str:
    if isinstance(example, str):
        return example
    [(name, arguments)] = example.items()
    return shlex.quote(f"{name}={json.dumps(arguments, ensure_ascii=False)}")


@command.command(
    "formats", short_help="List the formats that suites are read from.", examples=("proctor list formats",)
)
@click.argument("name", required=False, metavar="[NAME]")
@json_option
def formats(name: str | None, as_json: bool) -> int:
    """List the suite formats, or show NAME: which files it is read from, and whether Proctor can write it."""
    rows = _select_rows(name, [_format(known) for known in all_formats()], "format")
    if as_json:
        say_json("format-row", rows)
        return 0
    for item in rows:
        say(f"{item['name']:<9}  {item['summary']}")
        names = f"; named {', '.join(item['file_names'])}" if item["file_names"] else ""
        say(f"{'':<9}  read from {', '.join(item['endings']) or 'its own files'}{names}")
        if item["written_as"]:
            say(f"{'':<9}  written with: proctor dataset convert SUITE TARGET --to {'|'.join(item['written_as'])}")
    say("\nFiles are recognized by their content. docs/suites.md describes the native format, docs/migrate.md others.")
    return 0


def _select_rows(name: str | None, rows: list[dict[str, Any]], noun: str) -> list[dict[str, Any]]:
    """The row with this name, or all rows if there is no name."""
    if name is None:
        return rows
    names = [row["name"] for row in rows]
    if name not in names:
        hint = did_you_mean(name, names) or f"; there are {', '.join(names)}"
        raise UsageError(f"no {noun} is called {name!r}{hint}")
    return [row for row in rows if row["name"] == name]


def _format(known: Format) -> dict[str, Any]:
    return {
        "name": known.name,
        "summary": known.summary,
        "endings": list(known.suffixes),
        "file_names": list(known.file_names),
        "written_as": [known.name] if known.name in WRITABLE_FORMATS else [],
    }


@command.command(
    "agents", short_help="List the kinds of agents, and the installed frameworks.", examples=("proctor list agents",)
)
@click.argument("name", required=False, metavar="[NAME]")
@json_option
def agents(name: str | None, as_json: bool) -> int:
    """List what `agent:` in a suite and --agent accept, and the supported frameworks; NAME shows one framework."""
    frameworks: list[dict[str, Any]] = [
        {
            "name": adapter.name,
            "takes": f"of {adapter.title}, name {adapter.takes}",
            "packages": {package: _version(package) for package in adapter.packages},
        }
        for adapter in shipped_adapters()
    ]
    frameworks = _select_rows(name, frameworks, "framework")
    if as_json:
        ways = [{"for": use, "example": example} for use, example in _agent_kinds()]
        say_json("agents", {"agents": ways, "frameworks": frameworks, "installed": _packages_with_adapters()})
        return 0
    if name is None:
        _say_rows(_agent_kinds())
        say("\nAgents of frameworks are also written as file.py:name and recognized by their type:\n")
    for item in frameworks:
        there = [f"{package} {version}" for package, version in item["packages"].items() if version]
        missing = f"not installed ({pip_command(*item['packages'])})"
        say(f"{item['name']:<17}  {', '.join(there) or missing}")
        say(f"{'':<17}  {item['takes']}")
    for other in _packages_with_adapters() if name is None else ():
        say(f"{other}  from an installed package")
    say("\ndocs/agents.md and docs/frameworks.md describe them.")
    return 0


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _agent_kinds() -> list[tuple[str, str]]:
    """The kinds of agents, each with an example: Proctor's own, then those of plugins."""
    kinds = [(f"an agent in {plugin.name}'s format", kind.example) for plugin in plugins() for kind in plugin.agents]
    return [*AGENT_KINDS.items(), *kinds]


def _packages_with_adapters() -> list[str]:
    return sorted(plugin.name for plugin in installed_plugins() if plugin.adapters)
