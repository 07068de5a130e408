"""Translate the options of `holodeck test` that people type from habit to those of `proctor test`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from proctor.base.errors import UsageError

VALUE_OPTIONS = {"--parallel-test-cases": "--parallel", "-n": "--limit"}
"""Options with a value that have another name here."""
INGEST_OPTIONS = ("--force-ingest", "-f")
MARKDOWN_SUFFIXES = (".md", ".markdown")
FORMATS = {"json": "holodeck", "markdown": "holodeck-md"}
"""HoloDeck's formats and the reports that write them."""


def rewrite_options(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The same arguments with our options, and notes on what was replaced; raises `UsageError`."""
    rest: list[str] = []
    notes: list[str] = []
    values: dict[str, str] = {}
    words = _split_values(arguments)
    for word in words:
        if word in ("--output", "--format", *VALUE_OPTIONS):
            value = next(words, None)
            if value is None:
                raise UsageError(f"{word} needs a value")
            if word in VALUE_OPTIONS:
                rest += [VALUE_OPTIONS[word], value]
                notes.append(f"{word} {value} means {VALUE_OPTIONS[word]} {value} here")
            else:
                values[word] = value
        elif word in INGEST_OPTIONS:
            notes.append(f"{word} has no effect: every run reads the source files of the agent again")
        else:
            rest.append(word)
    if values:
        report = _report(values.get("--output"), values.get("--format"))
        rest += ["--report", report]
        notes.append(f"{' '.join(values)} means --report {report} here")
    return rest, notes


def _split_values(arguments: Sequence[str]) -> Iterator[str]:
    """Each word, with `--output=FILE` as two."""
    for word in arguments:
        name, sign, value = word.partition("=")
        if sign and name in ("--output", "--format", *VALUE_OPTIONS):
            yield from (name, value)
        else:
            yield word


def _report(output: str | None, style: str | None) -> str:
    """The value of `--report`; without a format, the name of the file decides."""
    if output is None:
        raise UsageError("--format needs --output FILE")
    style = style or ("markdown" if output.lower().endswith(MARKDOWN_SUFFIXES) else "json")
    if style not in FORMATS:
        raise UsageError(f"--format must be json or markdown, not {style!r}")
    return f"{FORMATS[style]}={output}"
