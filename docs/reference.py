"""Writes the reference pages of the documentation from the program itself: commands, evaluators, JSON output, Python.

python docs/reference.py FOLDER
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import click

API = {
    "Load, run, compare": "load run run_async compare judge",
    "Suites and cases": "Suite Case Turn Expected ExpectedCall Keywords Criteria Settings EvaluatorSpec NamedData",
    "Agents": "Agent Session Reply ToolCall Usage Runnable",
    "Evaluators of your own": "Evaluator Evaluable Evaluation EvaluationPending by_name",
    "Asserting in tests": "assert_pass assert_dataset_pass evaluate run_and_evaluate ScoreThreshold EvalAssertionError",
    "What came of it": "Run RunVerdict TrialResult Score Outcome Comparison",
    "Inside applications": "tool wrap observe start_observation capture_traces",
    "Judges": "Judge Question Panel",
    "Exceptions": "ProctorError InvalidSuite AgentFailed JudgeFailed StoreError UsageError",
}
"""The sections of the page on Python, and the public names in each."""


def write_reference(folder: Path) -> list[Path]:
    """Write every page whose text has changed, so that an unchanged one is not built again."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = {
        "commands.md": commands_page(),
        "evaluator-list.md": evaluators_page(),
        "json-output.md": json_page(),
        "suite-schema.md": suite_page(),
        "python-api.rst": python_page(),
    }
    for name, text in pages.items():
        path = folder / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    return [folder / name for name in pages]


def commands(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command with the words that call it."""
    if words:
        yield words, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            if found is not None and not found.hidden:
                yield from commands(found, (*words, name))


def commands_page() -> str:
    from proctor.cli import group

    parts = [
        "# Commands\n",
        "After this page you know every command with its options; it is written from the program itself. "
        "[Running](../running.md) shows them at work.\n",
        "Exit codes: 0 passed, 1 failed, 2 usage or invalid files, 3 inconclusive, 4 errors prevented a verdict, "
        "130 interrupted.\n",
    ]
    for words, command in commands(group):
        parts.append(f"{'#' * (len(words) + 1)} proctor {' '.join(words)}\n")
        context = click.Context(command, info_name=f"proctor {' '.join(words)}")
        usage = " ".join(command.collect_usage_pieces(context))
        parts.append(f"```text\nproctor {' '.join(words)} {usage}\n```\n")
        parts.append(_help(command.help or ""))
        rows = [row for parameter in command.params if (row := _option(parameter, context))]
        if rows:
            parts.append("| option | what it does |\n|---|---|\n" + "\n".join(rows) + "\n")
        if examples := getattr(command, "examples", ()):
            parts.append("```text\n" + "\n".join(examples) + "\n```\n")
    return "\n".join(parts)


def _help(text: str) -> str:
    """The help of a command as Markdown; what click leaves as it is written stays so."""
    told = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        if paragraph.startswith("\b"):
            told.append("```text\n" + paragraph.removeprefix("\b").strip("\n") + "\n```")
        else:
            told.append(_escaped(" ".join(paragraph.split())))
    return "\n\n".join(told) + "\n"


def _option(parameter: click.Parameter, context: click.Context) -> str:
    record = parameter.get_help_record(context) if isinstance(parameter, click.Option) else None
    if record is None:
        return ""
    return f"| {_code(record[0])} | {_escaped(record[1])} |"


def evaluators_page() -> str:
    from proctor.evaluators.registry import listed

    rows = []
    for item in sorted(listed(), key=lambda item: item.name.lower()):
        given = [_code(p.name if p.required else f"{p.name}: {json.dumps(p.default)}") for p in item.parameters]
        needs = ", ".join((*item.needs, *(["judge"] if item.judge != "none" else []))) or "an answer"
        rows.append(f"| `{item.name}` | {_escaped(item.summary)} | {needs} | {', '.join(given)} | {item.threshold:g} |")
    return (
        "# Evaluators, one line each\n\n"
        "After this page you know the name, needs, parameters and usual threshold of each shipped evaluator; "
        "it is written from their declarations, as `proctor list evaluators` is. [Evaluators](../evaluators.md) says "
        "how each one scores and when it is skipped.\n\n| name | what it scores | needs | parameters | passes from |\n"
        "|---|---|---|---|---|\n" + "\n".join(rows) + "\n"
    )


def json_page() -> str:
    parts = [
        "# JSON output\n",
        "After this page you can read whatever a command prints with `--json`: every document, and every row of a "
        "list, names its schema and version in `schema`. A change that would break a reader gets a new version. The "
        "files are in `proctor/schemas` of the installed package.\n",
    ]
    for schema in _schemas():
        parts.append(f"## {schema['$id']}\n\n{_escaped(schema['description'])}\n")
        rows = [
            _row(name, item, schema, "" if name in schema["required"] else " Not always there.")
            for name, item in schema["properties"].items()
            if name != "schema"
        ]
        parts.append("| key | type | what it is |\n|---|---|---|\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def suite_page() -> str:
    text = resources.files("proctor").joinpath("schemas", "suite.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    parts = [
        "# Keys of a suite\n",
        "After this page you know every key of the native format and its type; it is written from the schema that "
        "`proctor init` puts beside a suite, for editors. [The native format](../native.md) explains them.\n",
    ]
    named = {"Suite": schema, **schema["$defs"]}
    for name, item in sorted(named.items(), key=lambda pair: pair[0] != "Suite"):
        if not item.get("properties") or name == "EvaluatorWithOptions":  # a row for each evaluator: another page
            continue
        parts.append(f"## {name.removesuffix('Model')}\n\n{_escaped(' '.join(item.get('description', '').split()))}\n")
        needed = item.get("required", ())
        rows = [_row(key, value, schema, " Needed." * (key in needed)) for key, value in item["properties"].items()]
        parts.append("| key | type | what it is |\n|---|---|---|\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def _schemas() -> list[dict[str, Any]]:
    folder = resources.files("proctor").joinpath("schemas")
    found = (json.loads(file.read_text(encoding="utf-8")) for file in folder.iterdir() if file.name.endswith(".json"))
    return sorted((schema for schema in found if "x-commands" in schema), key=lambda schema: str(schema["$id"]))


def _row(name: str, item: dict[str, Any], schema: dict[str, Any], remark: str) -> str:
    return f"| `{name}` | {_kind(item, schema)} | {(_escaped(_about(item, schema)) + remark).strip()} |"


def _about(item: dict[str, Any], schema: dict[str, Any]) -> str:
    inner = _resolved(item, schema)
    told = item.get("description") or inner.get("description", "")
    held = _resolved(inner.get("items", inner), schema).get("properties")
    keys = ", ".join(f"`{key}`" for key in held) if held else ""
    return " ".join(part for part in (told, f"Keys: {keys}." if keys else "") if part)


def _kind(item: dict[str, Any], schema: dict[str, Any]) -> str:
    inner = _resolved(item, schema)
    if "enum" in inner:
        return ", ".join(_code(str(value)) for value in inner["enum"])
    if choices := inner.get("anyOf") or inner.get("oneOf"):
        return " or ".join(dict.fromkeys(_kind(choice, schema) for choice in choices))
    kinds = inner.get("type", "anything")
    return " or ".join(kinds) if isinstance(kinds, list) else str(kinds)


def _resolved(item: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    name = str(item.get("$ref", "")).removeprefix("#/$defs/")
    found: dict[str, Any] = schema["$defs"][name] if name else item
    return found


def python_page() -> str:
    import proctor

    lines = [
        "Python",
        "======",
        "",
        "After this page you can call Proctor from your own code; it is written from the docstrings, whose examples",
        "are executed. Every shipped evaluator is a public name too: see :doc:`evaluator-list`.",
        "",
        ".. currentmodule:: proctor",
        "",
    ]
    for title, names in API.items():
        lines += [title, "-" * len(title), ""]
        for name in names.split():
            value = getattr(proctor, name)
            kind = "autoclass" if inspect.isclass(value) else "autofunction"
            lines += [f".. {kind}:: proctor.{name}", *(["   :members:"] if kind == "autoclass" else []), ""]
    return "\n".join(lines)


def _code(text: str) -> str:
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}".replace("|", "\\|")


def _escaped(text: str) -> str:
    """Words as Markdown shows them: signs that would mean something are taken as they are, outside of code."""
    pieces = re.split(r"(`[^`]*`)", text)
    told = [
        piece if number % 2 else re.sub(r"([*_\[\]<>#{}|\\$])", r"\\\1", piece) for number, piece in enumerate(pieces)
    ]
    return "".join(piece.replace("|", "\\|") if number % 2 else piece for number, piece in enumerate(told))


if __name__ == "__main__":
    for written in write_reference(Path(sys.argv[1])):
        sys.stdout.write(f"{written}\n")
