"""How HoloDeck's `agent.yaml` is recognised and read."""

from __future__ import annotations

from pathlib import Path

from proctor.base.documents import Document
from proctor.base.json_data import Json
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


def refusal(data: Json) -> str | None:
    """Why a file that describes an agent is not a suite."""
    if isinstance(data, dict) and {"model", "instructions"} <= data.keys():
        return "describes an agent and no tests of it; add 'test_cases' or 'test_cases_file'"
    return None
