from __future__ import annotations

import json
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reporting_samples import FAILED, PENDING, make_run, score, single, small_run, trial

from proctor.base.errors import StoreError
from proctor.base.json_data import UNSET
from proctor.compat.pixie.scorecard import (
    DatasetEntryResult,
    DatasetScorecard,
    generate_dataset_scorecard_html,
    save_dataset_scorecard,
    scorecards_of,
)
from proctor.evaluators.evaluation import Evaluation, EvaluationPending, NothingToCompare
from proctor.evaluators.prompt_evaluators import AgentEvaluationPending
from proctor.results.verdict import verdict

MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SEEN = {"eval_input": "Where?", "eval_output": "Here.", "expectation": "There.", "eval_metadata": {"order": 7}}


class Page(HTMLParser):
    """The elements, attributes and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.shown = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in ("meta", "link", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.shown += data


def entry(*evaluations: Any, names: list[str] | None = None, label: str = "asks", seen: Any = SEEN) -> Any:
    return DatasetEntryResult(names or [f"E{n}" for n in range(len(evaluations))], evaluations, label, seen)


def page(*entries: Any, name: str = "faq") -> Page:
    return Page(generate_dataset_scorecard_html(DatasetScorecard(name, entries, MOMENT)))


def outcomes(*evaluations: Any) -> list[tuple[str, float | None]]:
    return [(score.outcome.value, score.value) for score in entry(*evaluations).scores]


def test_a_scorecard_shows_every_entry_with_its_own_evaluators() -> None:
    found = page(
        entry(Evaluation(1.0, "the same"), names=["Factuality"], label="greets"),
        entry(Evaluation(0.25, "too long", {"words": 90}), names=["Brevity"], label="explains"),
    )

    for text in (
        "Scorecard of faq",
        "greets",
        "explains",
        "the same",
        "too long",
        "words",
        "Where?",
        "Here.",
        "There.",
    ):
        assert text in found.shown
    assert "2026-01-02 03:04:05 UTC" in found.shown
    assert "1 of 2 cases passed" in found.shown


def test_what_was_not_measured_is_shown_as_such_and_never_as_a_zero() -> None:
    assert outcomes(
        None,
        NothingToCompare("no expectation"),
        AgentEvaluationPending("Tone", "kind"),
        EvaluationPending("ask Ada"),
        ConnectionError("gone"),
        Evaluation(float("nan"), ""),
        Evaluation("good", ""),  # type: ignore[arg-type]
        "words",
    ) == [
        ("skipped", None),
        ("skipped", None),
        ("pending", None),
        ("pending", None),
        ("error", None),
        ("error", None),
        ("error", None),
        ("error", None),
    ]
    found = page(entry(None, AgentEvaluationPending("Tone", "It is kind."), ConnectionError("gone")))
    for text in ("skipped", "pending", "It is kind.", "ConnectionError: gone"):
        assert text in found.shown
    assert "0.00" not in found.shown


@pytest.mark.parametrize(
    ("evaluation", "outcome", "value"),
    [
        (Evaluation(0.5), "passed", 0.5),
        (Evaluation(0.49), "failed", 0.49),
        (True, "passed", 1.0),
        (0, "failed", 0.0),
        (Evaluation(7), "passed", 1.0),
        (score(FAILED, 0.6, threshold=0.8), "failed", 0.6),
    ],
)
def test_a_score_passes_from_its_threshold_on(evaluation: Any, outcome: str, value: float) -> None:
    assert outcomes(evaluation) == [(outcome, value)]


@pytest.mark.parametrize(
    ("entries", "outcome"),
    [
        ([entry(Evaluation(1.0))], "passed"),
        ([entry(Evaluation(1.0), Evaluation(0.0))], "failed"),
        ([entry(Evaluation(1.0), EvaluationPending("wait"))], "pending"),
        ([entry(None)], "error"),
        ([entry()], "error"),
        ([], "error"),
    ],
)
def test_nothing_but_passed_scores_makes_a_scorecard_pass(entries: list[Any], outcome: str) -> None:
    assert ("class", f"banner {outcome}") in page(*entries).attributes


def test_entries_with_the_same_label_stay_apart() -> None:
    found = page(entry(Evaluation(1.0)), entry(Evaluation(0.0)))

    assert found.tags.count("details") == 2
    assert "1. asks" in found.shown
    assert "2. asks" in found.shown


HOSTILE = [
    "<script>alert(1)</script>",
    '"onload="alert(1)',
    "</style><script>alert(1)</script>",
    "</title><img src=x onerror=alert(1)>",
    "javascript:alert(1)",
    "\ud800\udfff\x00\x1b[2J",
    "x" * 1_000_000,
    "{{7*7}}${7*7}",
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:20]))
def test_what_comes_from_outside_is_shown_and_never_becomes_a_part_of_the_page(text: str) -> None:
    harmless = page(entry(Evaluation(0.1, "w", {"w": "w"}), names=["w"], label="w", seen={"w": "w", "input": "w"}))
    found = page(
        entry(Evaluation(0.1, text, {text: text}), names=[text], label=text, seen={text: text, "input": text}),
        name=text,
    )

    assert set(found.tags) == set(harmless.tags)
    assert found.tags.count("script") == 1
    assert not [name for name, _ in found.attributes if name.startswith("on")]
    assert not [value for name, value in found.attributes if name in ("src", "href") and value[0] not in "#d"]
    assert found.open == []


def test_a_page_with_huge_texts_stays_small_and_says_how_long_they_were() -> None:
    text = generate_dataset_scorecard_html(
        DatasetScorecard("faq", [entry(Evaluation(0, "r" * 1_000_000), seen={"output": "y" * 1_000_000})], MOMENT)
    )

    assert len(text) < 100_000
    assert "1,000,000 characters in all" in text


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), lambda inner: st.lists(inner, max_size=3)))
def test_any_value_can_be_shown(value: Any) -> None:
    found = page(entry(Evaluation(1.0, "", {"value": value}), seen={"eval_input": value, "more": {"deep": [value]}}))

    assert found.open == []


@pytest.mark.parametrize("value", [float("nan"), {1: {2, 3}}, object(), b"\xff", UNSET, None, [{"name": "n"}]])
def test_values_that_are_no_json_are_shown_as_well_as_they_can_be(value: Any) -> None:
    assert page(entry(Evaluation(1.0), seen={"eval_input": value, "other": value})).open == []


def test_named_values_are_shown_as_evaluators_see_them() -> None:
    one = page(entry(Evaluation(1.0), seen={"eval_input": [{"name": "q", "value": "Where to?"}]}))
    two = page(entry(Evaluation(1.0), seen={"eval_output": [{"name": "a", "value": 1}, {"name": "b", "value": 2}]}))

    assert "name" not in one.shown
    assert '"a": 1' in two.shown


def test_the_page_asks_nobody_for_anything() -> None:
    text = generate_dataset_scorecard_html(DatasetScorecard("faq", [entry(Evaluation(1.0))], MOMENT))

    assert "default-src 'none'" in text
    assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
    assert "prefers-color-scheme: dark" in text
    assert 'name="viewport"' in text


def test_names_and_evaluations_must_be_as_many() -> None:
    with pytest.raises(ValueError, match="2 evaluator names and 1 evaluations do not match"):
        DatasetEntryResult(["a", "b"], [Evaluation(1.0)], "x", {})


def test_a_scorecard_is_saved_under_its_time_and_name_and_none_is_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    card = DatasetScorecard("../Customer FAQ/" + "x" * 100, [entry(Evaluation(1.0))], MOMENT)

    first, second = save_dataset_scorecard(card), save_dataset_scorecard(card)
    third = save_dataset_scorecard(DatasetScorecard("", [], MOMENT), tmp_path / "else" / "where")

    name = "20260102-030405-customer-faq-" + "x" * 47
    assert first == tmp_path / ".proctor" / "scorecards" / f"{name}.html"
    assert second.name == f"{name}-2.html"
    assert third == tmp_path / "else" / "where" / "20260102-030405-dataset.html"
    assert sorted(path.name for path in first.parent.iterdir()) == sorted([first.name, second.name])
    assert first.read_text(encoding="utf-8") == generate_dataset_scorecard_html(card)


def test_a_scorecard_with_half_a_surrogate_pair_can_be_saved(tmp_path: Path) -> None:
    card = DatasetScorecard("\ud800", [entry(Evaluation(1.0), label="\ud800", seen={"\ud800": "\ud800"})], MOMENT)

    assert "\\ud800" in save_dataset_scorecard(card, tmp_path).read_text(encoding="utf-8")


def test_a_scorecard_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    with pytest.raises(StoreError, match="could not be written"):
        save_dataset_scorecard(DatasetScorecard("faq", [], MOMENT), tmp_path / "file")


def test_a_run_becomes_a_scorecard_for_each_suite_with_the_verdict_it_had() -> None:
    run = small_run()

    cards = scorecards_of(run)

    assert [card.dataset_name for card in cards] == [info.name for info in run.suites]
    assert [card.verdict[0] for card in cards if card.verdict] == [suite.outcome for suite in verdict(run).suites]
    assert sum(len(card.entries) for card in cards) == len(run.summaries)
    ends = [item.outcome for card in cards for item in card.entries]
    assert ends == [summary.outcome for summary in run.summaries]
    for card in cards:
        found = Page(generate_dataset_scorecard_html(card))
        assert card.verdict is not None
        assert ("class", f"banner {card.verdict[0].value}") in found.attributes


def test_a_trial_whose_agent_broke_down_says_so_on_its_scorecard() -> None:
    broken = trial("late", FAILED, None, reason="the agent gave no answer within 5 s")
    waits = trial(single("waits"), PENDING, "Dear Sir", score(PENDING, None, "Human", reasoning="ask Ada"), number=2)

    (card,) = scorecards_of(make_run([broken, waits]))

    found = Page(generate_dataset_scorecard_html(card))
    assert "the agent gave no answer within 5 s" in found.shown
    assert "waits #2" in found.shown
    assert "ask Ada" in found.shown
    assert json.dumps(card.entries[1].evaluable_dict)
