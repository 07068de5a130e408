"""Suites written to files: which format a name asks for, and what it can hold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from proctor.base.errors import StoreError, UsageError
from proctor.cases.formats.format_spec import Written
from proctor.cases.formats.loading import shipped_format
from proctor.cases.suite import Suite

WRITABLE = {
    "native": "native",
    "adk": "adk",
    "pixie": "pixie",
    "holodeck": "holodeck",
    "keywords": "keywords",
    "csv": "table",
}
_YAML_OR_JSON = (".yaml", ".yml", ".json")
ENDINGS = {
    "native": (*_YAML_OR_JSON, ".jsonl", ".ndjson"),
    "adk": (".json",),
    "pixie": (".json",),
    "holodeck": _YAML_OR_JSON,
    "keywords": (".json",),
    "csv": (".csv",),
}
"""The files that each format is read from again."""


def check_ending(form: str, target: Path) -> None:
    """A format is read again only from files of certain names."""
    if target.suffix not in ENDINGS[form]:
        raise UsageError(f"{target.name!r} cannot hold the format {form}; it is kept in {' or '.join(ENDINGS[form])}")


def format_for(target: Path) -> str:
    """The format that a file's name asks for."""
    name = target.name
    if name.endswith((".test.json", ".evalset.json")):
        return "adk"
    if name in ("agent.yaml", "agent.yml"):
        return "holodeck"
    if target.suffix == ".csv":
        return "csv"
    if target.suffix in (".yaml", ".yml", ".json", ".jsonl", ".ndjson"):
        return "native"
    raise UsageError(f"cannot tell a format from {name!r}; say --to {'|'.join(sorted(WRITABLE))}")


def written_as(suites: list[Suite], form: str, target: Path) -> Written:
    """The suites as text of a format, with what it cannot express."""
    if form == "native":
        from proctor.cases.formats.native.writer import write_text

        return write_text(suites, target.suffix)
    written = shipped_format(WRITABLE[form]).write(suites)
    if form == "holodeck" and target.suffix == ".json":
        from proctor.base.source import parse
        from proctor.cases.formats.format_spec import json_text

        return replace(written, text=json_text(parse(Path("written.yaml"), written.text)))
    return written


def write_file(target: Path, text: str) -> None:
    """Write, folders included; raises `StoreError` if that cannot be done."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
    except OSError as error:
        raise StoreError(f"{target} cannot be written: {error.strerror or error}") from None
