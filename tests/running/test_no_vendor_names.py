"""The engine knows protocols and hooks: `proctor.running` names no format and no vendor, and `cli` asks for none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import proctor
from proctor.cases.formats.loading import SHIPPED, Dialect, format_named, writable_formats
from proctor.cases.suite import Suite
from proctor.running.suite_hooks import SuiteHooks, hooks_of

SOURCE = Path(proctor.__file__).parent
VENDORS = (
    "holodeck",
    "adk",
    "pixie",
    "deepeval",
    "agno",
    "langchain",
    "langgraph",
    "llama_index",
    "smolagents",
    "pydantic_ai",
    "crewai",
    "openai",
    "anthropic",
    "claude",
    "gemini",
    "google",
    "vertex",
    "azure",
    "bedrock",
    "ollama",
    "autoevals",
    "braintrust",
)
ALLOWED = {
    "PIXIE_RUNNABLE_CONCURRENCY": "an environment variable that people who come from pixie have set already",
}


def named_vendors(folder: Path) -> list[str]:
    pattern = re.compile(rf"(?<![a-z])({'|'.join(VENDORS)})(?![a-z])", re.IGNORECASE)
    found = []
    for path in sorted(folder.rglob("*.py")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for allowed in ALLOWED:
                line = line.replace(allowed, "")
            found += [f"{path.relative_to(SOURCE)}:{number}: {match[0]}" for match in pattern.finditer(line)]
    return found


def test_no_vendor_and_no_foreign_format_is_named_where_cases_are_run() -> None:
    assert named_vendors(SOURCE / "running") == []


def test_every_allowed_name_is_still_in_use() -> None:
    texts = "".join(path.read_text(encoding="utf-8") for path in (SOURCE / "running").rglob("*.py"))
    assert [name for name in ALLOWED if name not in texts] == []


@pytest.mark.parametrize("package", ["running", "cli", "plugin", "reporting", "results"])
def test_no_part_asks_for_the_format_of_a_suite_by_name(package: str) -> None:
    asked = re.compile(r"\.format\s*(==|!=|in\b|not in\b)")
    found = [
        f"{path.relative_to(SOURCE)}:{number}"
        for path in sorted((SOURCE / package).rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if asked.search(line)
    ]
    assert found == []


@pytest.mark.parametrize(
    "name", [known.NAME for known in writable_formats().values() if not isinstance(known, Dialect)]
)
def test_every_format_declares_its_endings_and_can_be_asked_for_hooks(name: str) -> None:
    known = format_named(name)
    assert known is not None
    assert known.DECLARED.endings
    assert isinstance(hooks_of(Suite("a", (), format=name)), SuiteHooks)


def test_every_shipped_format_can_be_named() -> None:
    shipped = [known for known in writable_formats().values() if not isinstance(known, Dialect)]
    assert len(shipped) == len(SHIPPED)


def test_a_suite_of_an_unknown_format_has_the_hooks_that_add_nothing() -> None:
    hooks = hooks_of(Suite("a", (), format="of another program"))
    assert type(hooks) is SuiteHooks
    assert not hooks.describes_agent(Suite("a", ()))
