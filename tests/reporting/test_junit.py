from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from reporting_samples import (
    ERROR,
    FAILED,
    HOSTILE,
    PASSED,
    PENDING,
    SKIPPED,
    OnePass,
    make_run,
    matches_golden,
    report,
    score,
    small_run,
    trial,
)

from proctor.reporting import junit

SCHEMA = etree.XMLSchema(etree.parse(Path(__file__).with_name("junit.xsd")))


def tree(run: object) -> etree._Element:
    root = etree.fromstring(report(junit, run).encode("utf-8"), etree.XMLParser(huge_tree=True))
    SCHEMA.assertValid(root)
    return root


def test_a_small_run_reads_as_recorded() -> None:
    assert matches_golden("junit.xml", report(junit, small_run()))


def test_there_is_one_testcase_per_trial_and_every_count_is_right() -> None:
    root = tree(small_run())
    support, booking = root

    assert [suite.get("name") for suite in root] == ["support", "booking"]
    for suite, counts in ((support, (7, 3, 1, 1)), (booking, (2, 1, 0, 0))):
        said = tuple(int(suite.get(name)) for name in ("tests", "failures", "errors", "skipped"))
        found = tuple(len(suite.findall(f".//{tag}")) for tag in ("testcase", "failure", "error", "skipped"))
        assert said == found == counts
    assert support.get("time") == "1.840"
    assert [case.get("name") for case in support.iter("testcase")][-2:] == ["greeting", "greeting #2"]


@pytest.mark.parametrize(
    ("outcome", "tag"), [(FAILED, "failure"), (ERROR, "error"), (SKIPPED, "skipped"), (PENDING, "failure")]
)
def test_each_outcome_has_its_element(outcome: object, tag: str) -> None:
    case = tree(make_run([trial("a", outcome, "x", reason="because of that")])).find(".//testcase")

    assert [child.tag for child in case] == [tag]
    assert "because of that" in case[0].get("message")


def test_a_failure_says_what_was_expected_and_why_it_failed() -> None:
    failure = tree(small_run()).find(".//failure")

    assert failure.get("message").startswith("ExpectedTools 0.25 < 0.50: lookup_policy: topic")
    assert "You can return items within 30 days." in failure.text
    assert 'lookup_policy(topic="shipping")' in failure.text


def test_scores_are_there_for_passing_trials_too() -> None:
    suite = tree(make_run([trial("a", PASSED, "x", score(PASSED, 0.75, "BLEU"))])).find("testsuite")

    assert "a: passed (BLEU 0.750)" in suite.findtext("system-out")
    names = {item.get("name"): item.get("value") for item in suite.iter("property")}
    assert names["proctor.score.BLEU"].startswith("0.750 [")


def test_characters_that_xml_cannot_hold_are_spelt_out() -> None:
    bad = trial(f"id {HOSTILE}", FAILED, HOSTILE, score(FAILED, 0.0, HOSTILE, reasoning=HOSTILE), suite=HOSTILE)

    root = tree(make_run([bad]))

    assert "\\u001b[2J" in root.find(".//failure").text
    assert "\\ud800" in root.find(".//failure").text


@given(st.text(st.characters(codec=None), max_size=80))
def test_any_text_anywhere_makes_a_valid_document(text: str) -> None:
    tree(
        make_run([trial(text or "a", FAILED, text, score(FAILED, 0.0, text, reasoning=text), suite=text, reason=text)])
    )


def test_odd_times_stay_within_the_schema() -> None:
    tree(make_run([trial("a", duration_ms=-1.0), trial("b", duration_ms=float("nan"))], started_at=1e300))


def test_suites_that_come_interleaved_are_kept_apart() -> None:
    root = tree(make_run([trial("a", suite="one"), trial("b", suite="two"), trial("c", suite="one")]))

    assert [[case.get("name") for case in suite.iter("testcase")] for suite in root] == [["a", "c"], ["b"]]


def test_a_suite_without_trials_is_there_and_empty() -> None:
    assert tree(make_run([])).find("testsuite").get("tests") == "0"


def test_five_thousand_trials_are_read_once() -> None:
    trials = [trial(f"case-{n}", suite=f"suite-{n // 500}") for n in range(5_000)]
    stream = OnePass(5_000, trials.__getitem__)

    root = tree(make_run(trials, stream=stream))

    assert stream.made == 5_000
    assert len(root.findall(".//testcase")) == 5_000
