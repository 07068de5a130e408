"""Exported runs in which one value was replaced: each is refused at import, or can be shown."""

from __future__ import annotations

import copy
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import proctor
from proctor.agents.reply import Reply, ToolCall, Usage
from proctor.base.errors import ProctorError
from proctor.cases.suite import Case, Criteria, Expected, ExpectedCall, Suite, Turn
from proctor.reporting import json_report
from proctor.reporting.markdown import report as markdown_report
from proctor.results.store.run_files import export_run, import_run
from proctor.results.store.store import Store
from proctor.results.verdict import verdict

WRONG = ("x", -1, [], {}, None, 10**400)


def exported_lines() -> list[Any]:
    """The lines of an exported run with one failing case that has a tool call."""

    def agent(message: str) -> Reply:
        return Reply("hello", tool_calls=(ToolCall("find", {"order": 7}, {"state": "sent"}),), usage=Usage(3, 4))

    expected = Expected(output="bye", tools=(ExpectedCall("find", {"order": 7}),))
    case = Case(id="one", turns=(Turn("hi", expected=expected),))
    run = proctor.run(Suite("desk", cases=(case,), criteria=Criteria(pct=0.5)), agent)
    out = io.StringIO()
    export_run(run, out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*place, key)
        yield from places(item, (*place, key))


def with_value(document: Any, place: tuple[Any, ...], value: Any) -> Any:
    changed = copy.deepcopy(document)
    parent = changed
    for key in place[:-1]:
        parent = parent[key]
    parent[place[-1]] = value
    return changed


def test_what_is_imported_can_be_shown(tmp_path: Path) -> None:
    lines = exported_lines()
    accepted = refused = 0
    store = Store(tmp_path)
    for place in places(lines):
        for wrong in WRONG:
            document = with_value(lines, place, wrong)
            try:
                run, _ = import_run(store, [f"{json.dumps(line)}\n" for line in document], "run.jsonl")
            except ProctorError:
                refused += 1
                continue
            accepted += 1
            json_report.write(run, verdict(run), io.StringIO())
            markdown_report.write(run, verdict(run), io.StringIO())
            store.delete_runs([run])
    store.close()
    assert accepted > 50  # texts and data of users may be anything
    assert refused > 300
