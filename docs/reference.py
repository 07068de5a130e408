"""Writes the reference pages of the documentation from the code: commands, evaluators, suite keys, JSON, Python.

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
import yaml

API = {
    "Load, run, compare": "load run run_async compare verdict",
    "Suites and cases": "Suite Case Turn Expected ExpectedCall Keywords Criteria Settings EvaluatorSpec NamedData",
    "Agents": "Agent Session Reply ToolCall Usage Runnable",
    "Your own evaluators": "Evaluator Evaluable Evaluation EvaluationPending by_name",
    "Asserting in tests": "assert_pass assert_dataset_pass evaluate run_and_evaluate ScoreThreshold EvalAssertionError",
    "Results": "Run RunVerdict Trial Score Outcome Comparison",
    "Tracing": "tool wrap observe start_observation capture_traces",
    "Judges": "Judge Question Panel",
    "Exceptions": "ProctorError InvalidSuite AgentFailed JudgeFailed StoreError UsageError",
}
"""The sections of the Python reference, and the public names in each."""

NEEDS = {
    "reference": "an expected output",
    "keywords": "keywords, in the case or here",
    "tools": "expected tools",
    "passages": "passages",
    "question": "an input",
    "rubrics": "rubrics, in the case or here",
    "final state": "`final_state`",
    "scenario": "a scenario",
    "role": "a role",
    "grounds": "context, passages or an expected output",
}
"""What an evaluator is skipped without, as the reference names it."""

SUITE_PARTS = (
    *("Suite", "CaseModel", "TurnModel", "ExpectedAnswer", "ContainsWords", "ExpectedTool", "EvaluatorOptions"),
    *("MockModel", "ScenarioModel", "QuarantineModel", "AttachedFile", "CriteriaModel", "SettingsModel"),
)
"""The order of sections in the page on suite keys; others come last."""

TOOLS = {
    "proctor.compat.adk": "ADK",
    "proctor.compat.pixie": "pixie",
    "proctor.compat.holodeck": "HoloDeck",
    "proctor.compat.deepeval": "DeepEval",
}


def write_reference(folder: Path) -> list[Path]:
    """Write every page whose text has changed; Sphinx then does not build the others again."""
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
    """Every command, with the words that call it."""
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
        "Every command with its options, generated from the code. [Running](../running.md) shows them at work.\n",
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
    """The help of a command as Markdown. Paragraphs that click does not wrap (`\\b`) become code."""
    parts = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        if paragraph.startswith("\b"):
            parts.append("```text\n" + paragraph.removeprefix("\b").strip("\n") + "\n```")
        else:
            parts.append(_escaped(" ".join(paragraph.split())))
    return "\n\n".join(parts) + "\n"


def _option(parameter: click.Parameter, context: click.Context) -> str:
    record = parameter.get_help_record(context) if isinstance(parameter, click.Option) else None
    if record is None:
        return ""
    return f"| {_code(record[0])} | {_escaped(record[1])} |"


def evaluators_page() -> str:
    from proctor import plugins
    from proctor.evaluators.declaration import FAMILIES
    from proctor.evaluators.index import PACKAGE, collect_declarations

    own = collect_declarations(PACKAGE)
    groups = {
        title: [item for item in own if item.family == family and not item.variant_of]
        for family, title in FAMILIES.items()
    }
    groups["Variants"] = [item for item in own if item.variant_of or item.family not in FAMILIES]
    for name in plugins.SHIPPED:
        package, _, module = name.rpartition(".")
        if module == "plugin" and (items := collect_declarations(package)):
            groups[f"From {TOOLS.get(package, package)}"] = items
    parts = [
        "# Evaluator reference\n",
        "Every shipped evaluator with its parameters, generated from the code. `proctor list evaluators NAME` shows "
        "the same in the terminal. [Evaluators](../evaluators.md) says which one to choose.\n",
        "An evaluator that lacks what it needs is skipped. A parameter without a default is required.\n",
    ]
    for title, items in groups.items():
        parts.append(f"## {title}\n")
        parts += [_evaluator(item) for item in items]
    return "\n".join(parts)


def _evaluator(item: Any) -> str:
    needs = [NEEDS.get(need, need) for need in item.needs]
    judge = {
        "none": "",
        "model": "yes, a model",
        "rules or model": "yes; the rule-based judge can answer",
        "embeddings": "no; it needs embeddings",
    }[item.judge]
    rows = {
        "Other names": ", ".join(map(_code, item.also)),
        "Parameters": ", ".join(
            _code(p.name) if p.required else _code(f"{p.name}: {_yaml(p.default)}")
            for p in sorted(item.parameters, key=lambda p: (not p.required, p.name in ("model", "samples")))
        ),
        "Needs": " or ".join(needs),
        "Asks a judge": judge,
        "Threshold": f"{item.threshold:g}",
        "Scores": {"turn": "each turn", "case": "the whole conversation"}.get(item.scope, item.scope),
    }
    listed = "\n".join(f"- {name}: {value}" for name, value in rows.items() if value)
    example = f"- {item.name}\n"
    if item.example:
        example = yaml.safe_dump([item.entry], default_flow_style=None, sort_keys=False, allow_unicode=True, width=110)
    text = "\n\n".join(_escaped(part) for part in (item.summary, item.score) if part)
    return f"### {item.name}\n\n{text}\n\n{listed}\n\n```yaml\n{example}```\n"


def _yaml(value: object) -> str:
    """A default as YAML writes it on one line."""
    if isinstance(value, str):
        return value or '""'
    if isinstance(value, list):
        return f"[{', '.join(map(_yaml, value))}]"
    return json.dumps(value)


def json_page() -> str:
    parts = [
        "# JSON output\n",
        "What commands print with `--json`. Every document, and every row of a list, names its schema and version in "
        "`schema`. A change that would break a reader gets a new version. The schemas are in `proctor/schemas` of the "
        "installed package.\n",
    ]
    for schema in _schemas():
        parts.append(f"## {schema['$id']}\n\n{_escaped(schema['description'])}\n")
        rows = [
            _row(name, item, schema, "" if name in schema["required"] else " Optional.")
            for name, item in schema["properties"].items()
            if name != "schema"
        ]
        parts.append("| key | type | meaning |\n|---|---|---|\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def suite_page() -> str:
    text = resources.files("proctor").joinpath("schemas", "suite.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    parts = [
        "# Suite keys\n",
        "Every key of a suite file and its type, generated from the schema that `proctor init` writes next to a suite "
        "for editors. [Writing suites](../suites.md) explains them.\n",
    ]
    named = {"Suite": schema, **schema["$defs"]}
    for name in sorted(named, key=lambda name: SUITE_PARTS.index(name) if name in SUITE_PARTS else len(SUITE_PARTS)):
        item = named[name]
        if not item.get("properties") or name == "EvaluatorWithOptions":  # has its own page
            continue
        parts.append(f"## {name.removesuffix('Model')}\n\n{_escaped(' '.join(item.get('description', '').split()))}\n")
        needed = item.get("required", ())
        rows = [
            _row(key, value, schema, " Required." * (key in needed))
            for key, value in item["properties"].items()
            if not value.get("deprecated")
        ]
        table = "\n".join(rows).replace(" or null |", " |")  # a key without a value is as if it were left out
        parts.append(f"| key | type | meaning |\n|---|---|---|\n{table}\n")
    return "\n".join(parts)


def _schemas() -> list[dict[str, Any]]:
    folder = resources.files("proctor").joinpath("schemas")
    found = (json.loads(file.read_text(encoding="utf-8")) for file in folder.iterdir() if file.name.endswith(".json"))
    return sorted((schema for schema in found if "x-commands" in schema), key=lambda schema: str(schema["$id"]))


def _row(name: str, item: dict[str, Any], schema: dict[str, Any], remark: str) -> str:
    return f"| `{name}` | {_kind(item, schema)} | {(_escaped(_about(item, schema)) + remark).strip()} |"


def _about(item: dict[str, Any], schema: dict[str, Any]) -> str:
    inner = _resolved(item, schema)
    text = item.get("description") or inner.get("description", "")
    properties = _resolved(inner.get("items", inner), schema).get("properties")
    keys = ", ".join(f"`{key}`" for key, value in (properties or {}).items() if not value.get("deprecated"))
    return " ".join(part for part in (text, f"Keys: {keys}." if keys else "") if part)


def _kind(item: dict[str, Any], schema: dict[str, Any]) -> str:
    inner = _resolved(item, schema)
    if "enum" in inner:
        return ", ".join(_code(str(value)) for value in inner["enum"])
    if choices := inner.get("anyOf") or inner.get("oneOf"):
        kinds = dict.fromkeys(_kind(choice, schema) for choice in choices)
        return " or ".join(kinds)
    kinds = inner.get("type", "anything")
    return " or ".join(kinds) if isinstance(kinds, list) else str(kinds)


def _resolved(item: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    name = str(item.get("$ref", "")).removeprefix("#/$defs/")
    found: dict[str, Any] = schema["$defs"][name] if name else item
    return found


def python_page() -> str:
    import proctor

    lines = [
        "Python API",
        "==========",
        "",
        "The public names of `proctor`, from their docstrings. Every shipped evaluator is a public name too: see",
        ":doc:`evaluator-list`. :doc:`../python` shows them at work.",
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
    """Text with Markdown's special characters escaped, except inside code."""
    pieces = re.split(r"(`[^`]*`)", text)
    return "".join(
        piece.replace("|", "\\|") if number % 2 else re.sub(r"([*_\[\]<>#{}|\\$])", r"\\\1", piece)
        for number, piece in enumerate(pieces)
    )


if __name__ == "__main__":
    for written in write_reference(Path(sys.argv[1])):
        sys.stdout.write(f"{written}\n")
