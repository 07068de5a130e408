"""What HoloDeck's format declares to the loader: how an `agent.yaml` is recognised, read and written.

The loader asks every format about every file, so reader and writer are loaded when a file really is one of these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from proctor.base.documents import Document
from proctor.base.json_data import Json, json_text
from proctor.base.source import parse
from proctor.cases.formats.format_spec import JSON_AND_YAML, Declaration, Written, mentions_key
from proctor.cases.suite import Suite

_ROOT_MARKS = frozenset("model instructions evaluations execution agent".split())
_TEST_MARKS = frozenset("ground_truth expected_tools turns retrieval_context turn_config".split())


def recognises(path: Path, data: Json) -> bool:
    """An agent with tests; a file of nothing but tests belongs to the agent that names it in `test_cases_file`."""
    if not isinstance(data, dict) or data.keys() <= {"test_cases"}:
        return False
    if "test_cases" not in data and "test_cases_file" not in data:
        return False
    if not _ROOT_MARKS.isdisjoint(data):
        return True
    tests = data.get("test_cases")
    return isinstance(tests, list) and any(isinstance(t, dict) and not _TEST_MARKS.isdisjoint(t) for t in tests)


def read(document: Document, *, to_be_completed: bool = False) -> list[Suite]:
    """The suite of an agent with tests; `to_be_completed` allows one to whom a caller gives tests later."""
    from proctor.cases.formats.holodeck.agent_file import read_document

    return read_document(document, to_be_completed=to_be_completed)


def write(suites: Sequence[Suite], ending: str = "") -> Written:
    """One `agent.yaml` per suite; JSON if the ending asks for it."""
    from proctor.cases.formats.holodeck.agent_file_writer import write_agent_files

    written = write_agent_files(suites)
    if ending != ".json":
        return written
    return replace(written, text=json_text(parse(Path("written.yaml"), written.text)))


def _resembles(path: Path, text: str) -> bool:
    return path.suffix in JSON_AND_YAML and mentions_key(text, "test_cases")


def _refusal(data: Mapping[str, Json]) -> str | None:
    if {"model", "instructions"} <= data.keys():
        return "describes an agent and no tests of it; add 'test_cases' or 'test_cases_file'"
    return None


def _evaluator_names() -> dict[str, str]:
    from proctor.cases.formats.holodeck.metrics import RAG, STANDARD

    return {"geval": "GEval", **STANDARD, **RAG}


DECLARED = Declaration(
    endings=(".yaml", ".yml", ".json"),
    own_keys=frozenset({"instructions", "test_cases_file"}),
    file_names=("agent.*",),
    written_to=("agent.yaml", "agent.yml"),
    resembles=_resembles,
    refusal=_refusal,
    evaluator_names=_evaluator_names,
    agent_hint="describe one with `model` and `instructions`, add `agent: app.py:agent`, or ",
)
