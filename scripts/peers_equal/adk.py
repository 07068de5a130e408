"""google-adk: trajectories of tool calls, and whole evaluations of agents."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from peers_equal.adk_cases import Cases, all_cases
from peers_equal.comparison import Comparison, Peer, compare_items
from peers_equal.environments import Environment

MATCH_TYPES = ("EXACT", "IN_ORDER", "ANY_ORDER")
TRAJECTORIES = 12_000
TEXTS = 2_000
JUDGED = 300
LABELS = ("supported", "unsupported", "contradictory", "disputed", "not_applicable")

RUBRICS = "rubric_based_final_response_quality_v1"
SLOPPY_JUDGES: dict[str, Any] = {
    "a judge that leaves out a rubric": {"metric": RUBRICS, "replies": [[True]], "items": 2},
    "a verdict that is neither yes nor no": {"metric": RUBRICS, "replies": [["unknown", True]]},
}
"""Replies that are not complete, by the row of the page."""

LEGACY_FILES: dict[str, Any] = {
    "rows of ADK for TypeScript": [
        {"query": "hi", "expected_tool_use": [{"name": "look", "args": {"parcelId": 7}}], "reference": "Hello"},
        {"query": "bye", "reference": "Bye"},
    ],
    "rows of adk-python": [
        {
            "query": "hi",
            "expected_tool_use": [{"tool_name": "look", "tool_input": {"parcelId": 7}}],
            "reference": "Hello",
        },
        {
            "query": "bye",
            "expected_tool_use": [],
            "expected_intermediate_agent_responses": [{"author": "desk", "text": "One moment."}],
            "reference": "Bye",
        },
    ],
    "rows without tools": [{"query": "hi", "reference": "Hello"}, {"query": "bye", "reference": "Bye"}],
}
"""Arrays in the format before EvalSets; the number of rows is the number of invocations after migration."""


def _folder(answers: tuple[str, ...]) -> list[dict[str, Any]]:
    cases = Cases()
    for number, answer in enumerate(answers):
        cases.add(f"file {number} of {answers}", ([[answer]], "Sunny.", []))
    return list(cases.cases.values())


FOLDERS = {"both pass": _folder(("Sunny.", "Sunny.")), "the first fails": _folder(("Rain", "Rain"))}
"""The cases of the files in a folder; what is compared is how many of them were evaluated."""


def compare(environment: Environment) -> Iterator[Comparison]:
    cases = all_cases()
    inputs = {
        "trajectories": list(random_trajectories(TRAJECTORIES)),
        "texts": list(random_texts(TEXTS)),
        "agents": cases.cases,
        "folders": FOLDERS,
        "judged": dict(random_judgements(JUDGED)) | SLOPPY_JUDGES,
        "histories": cases.cases,
    }
    original = environment.call("adk_original.py", inputs)
    inputs["histories"] = original["histories"]["files"]
    migrated = environment.call("adk_ours.py", {"migrated": LEGACY_FILES})
    loaded = environment.call("adk_original.py", {"loaded": migrated["migrated"]})
    ours = environment.call("adk_ours.py", inputs)
    yield compare_items("random lists of tool calls", original["trajectories"], ours["trajectories"])
    yield compare_items("random pairs of texts", original["texts"], ours["texts"])
    yield compare_items("cases with a google-adk agent", original["agents"], ours["agents"], cases.documented)
    rows = {name: name for name in SLOPPY_JUDGES}
    yield compare_items("scores from the same replies of a judge", original["judged"], ours["judged"], rows)
    yield compare_items("folders", original["folders"], ours["folders"], {"the first fails": "a failing file"})
    empty = {name: row for name, row in cases.documented.items() if row == "a config without criteria"}
    yield compare_items("imported results", original["histories"]["results"], ours["histories"], empty)
    expected = {name: len(data) for name, data in LEGACY_FILES.items()}
    yield compare_items("migrated files that google-adk loads", loaded["loaded"], expected)


def random_trajectories(count: int) -> Iterator[dict[str, Any]]:
    """Expected and actual calls. Few different ones, so that many lists match, or nearly so."""
    chance = random.Random(28)
    for number in range(count):
        names = ["search", "book", "pay"][: chance.randint(1, 3)]
        expected = [random_call(chance, names) for _ in range(chance.choice((0, 0, 1, 1, 2, 2, 3, 4)))]
        actual = [random_call(chance, names) for _ in range(chance.choice((0, 1, 1, 2, 2, 3, 4, 5)))]
        if chance.random() < 0.5:  # what was expected, with changes
            actual = [*expected, *actual[: chance.choice((0, 0, 1, 2))]]
            if chance.random() < 0.5:
                chance.shuffle(actual)
        yield {
            "name": f"list {number}",
            "match_type": MATCH_TYPES[number % 3],
            "ignore_args": chance.random() < 0.25,
            "expected": expected,
            "actual": actual,
        }


def random_call(chance: random.Random, names: list[str]) -> dict[str, Any]:
    values = ("London", "london", "", 1, 1.0, 2, None, ["a", "b"], ["b", "a"], {"to": "Rome", "via": None}, {})
    arguments = {key: chance.choice(values) for key in ("city", "day") if chance.random() < 0.4}
    return {"name": chance.choice(names), "args": arguments}


def random_texts(count: int) -> Iterator[dict[str, str]]:
    """Expected texts and answers that share words, in several scripts."""
    chance = random.Random(103)
    words = "the weather in London is sunny running runs ran cafés Café don't 12.5 12,5 $1,250 naïve e-mail".split()
    words += (
        "今天天气很好 สวัสดีครับ Сегодня солнечно مرحبا नमस्ते ☀️ Ｌｏｎｄｏｎ ﬁne İstanbul straße ½ x² 한국어 かな".split()
    )
    for number in range(count):
        expected = ["word", *chance.choices(words, k=chance.randint(0, 8))]
        answer = chance.sample(expected, chance.randint(0, len(expected))) + chance.choices(
            words, k=chance.randint(0, 4)
        )
        separator = chance.choice((" ", "\n", ", ", "  "))
        yield {"name": f"texts {number}", "expected": separator.join(expected), "answer": separator.join(answer)}


def random_judgements(count: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """What a judge that answers in full says: of each sample and rubric, or of each sentence."""
    chance = random.Random(7)
    metrics = (
        "final_response_match_v2",
        "rubric_based_final_response_quality_v1",
        "rubric_based_tool_use_quality_v1",
        "hallucinations_v1",
    )
    for number in range(count):
        metric = metrics[number % len(metrics)]
        if metric == "hallucinations_v1":
            replies: list[Any] = [chance.choices(LABELS, k=chance.randint(1, 6))]
        else:
            items = 1 if metric == "final_response_match_v2" else chance.randint(1, 4)
            replies = [chance.choices((True, False), k=items) for _ in range(chance.randint(1, 5))]
        yield f"{metric} {number}", {"metric": metric, "replies": replies}


PEER = Peer("adk", ("google-adk[eval]",), compare)
