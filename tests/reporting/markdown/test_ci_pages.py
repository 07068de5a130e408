"""The comment of a pull request: short enough for every run, found again by its marker, and of harmless words."""

from __future__ import annotations

import io
import re
from typing import Any

from markdown_it import MarkdownIt
from reporting_samples import ERROR, FAILED, HOSTILE, PASSED, make_run, score, single, trial

from proctor.agents.reply import Reply, Usage
from proctor.reporting.markdown.ci_pages import MAX_COMMENT, Comment, marker, write_comment
from proctor.results.comparison.compare import compare_runs
from proctor.results.gate_result import (
    CaseStatus,
    GatedCaseResult,
    GatedSuite,
    GateResult,
    GateVerdict,
    SuiteWideResult,
)
from proctor.results.run import Run
from proctor.results.score import Outcome
from proctor.results.verdict import verdict


def run_of(*outcomes: tuple[str, Outcome], **rest: Any) -> Run:
    usage = Usage(input_tokens=10, output_tokens=5, cost_usd=rest.pop("cost", 0.01))
    trials = [
        trial(single(name, output="Five days."), outcome, None, *_scores(outcome), replies=(Reply("x", usage=usage),))
        for name, outcome in outcomes
    ]
    return make_run(trials, **rest)


def _scores(outcome: Outcome) -> tuple[Any, ...]:
    return () if outcome is ERROR else (score(outcome, float(outcome is PASSED), reasoning="the answers differ"),)


def comment_text(before: Run | None, after: Run, **rest: Any) -> str:
    out = io.StringIO()
    comparison = None if before is None else compare_runs(before, after)
    write_comment(Comment(after, verdict(after), comparison, **rest), out)
    return out.getvalue()


BEFORE = run_of(("a", PASSED), ("b", FAILED), ("c", PASSED), ("d", FAILED), id="one")
AFTER = run_of(("a", FAILED), ("b", PASSED), ("c", PASSED), ("d", FAILED), id="two", cost=0.03)


def test_it_says_what_broke_what_was_fixed_and_what_it_costs() -> None:
    text = comment_text(BEFORE, AFTER, report="https://ci.example/report.html")
    first, headline, _, sentence, *_ = text.splitlines()
    assert first == marker()
    assert headline == "## Proctor: ❌ FAILED"
    assert sentence.startswith(
        "**2 of 4 cases passed.** Compared with one: 1 broken, 1 still failing, 1 fixed, 1 still "
    )
    assert "[Open the report](https://ci.example/report.html)" in sentence
    assert "| [support/a](https://ci.example/report.html#trial-0) | ❌ broken 1/1 → 0/1 | ExactMatch 0.00" in text
    assert "| [support/b](https://ci.example/report.html#trial-1) | ✅ fixed 0/1 → 1/1 |" in text
    assert "| [support/d](https://ci.example/report.html#trial-3) | ❌ still failing 0/1 → 0/1 |" in text
    assert "Cost per trial $0.0100 → $0.0300 (×3.00)" in text.replace("\\", "")
    assert "Median time per trial" in text
    assert "`proctor test support.yaml::a`" in text
    page = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    assert page.count("<details>") == page.count("</details>") == 1
    assert page[: page.index("<details>")].count("<table>") == 1
    assert "no significant difference" not in text.lower()


def test_without_an_earlier_run_it_says_so_and_what_failed() -> None:
    text = comment_text(None, run_of(("a", PASSED), ("b", FAILED)))
    assert "No earlier run to compare with." in text
    assert "| support/b | ❌ failed | ExactMatch 0.00 &lt; 0.50: the answers differ |" in text


def test_a_link_to_an_archive_of_reports_promises_no_page_behind_it() -> None:
    """The artifact of a workflow is downloaded; an address inside it leads nowhere."""
    archive = "https://github.com/o/r/actions/runs/1/artifacts/2"
    text = comment_text(BEFORE, AFTER, report=archive)
    assert f"[Download the reports]({archive})" in text
    assert "#trial-" not in text


def test_a_gated_run_has_one_verdict_and_one_cause() -> None:
    """Not: regression, a got worse. No significant difference."""
    worse = GatedCaseResult("support", "a", CaseStatus.REGRESSED, FAILED, 9, 9, rerun_trials=3, p_value=0.001)
    same = GatedCaseResult("support", "d", CaseStatus.UNCHANGED, FAILED, 9, 0)
    gate = GateResult(
        GateVerdict.REGRESSION,
        "a got worse",
        suites=(GatedSuite("support", GateVerdict.REGRESSION, "a got worse"),),
        cases=(worse, same),
        suite_wide=SuiteWideResult(1, 0.5, 0.9, proven=False, in_doubt=False),
        baseline="support.baseline.jsonl",
        alpha=0.05,
        max_trials=5,
        extra_trials=3,
        stopped=None,
    )
    after = run_of(("a", FAILED), ("b", PASSED), ("c", PASSED), ("d", FAILED), id="two", gate=gate)
    text = comment_text(BEFORE, after)
    visible = text[: text.index("<details>")]
    assert "## Proctor: ❌ regression\n\n**a got worse.**\n" in visible
    assert "no significant difference" not in text.lower()
    assert "broken" not in visible
    why = "ExactMatch 0.00 &lt; 0.50: the answers differ; 9/9 in the baseline, 0/3 re-run"
    assert f"| support/a | ❌ regressed 1/1 → 0/1 | {why}" in visible
    assert "support/d" not in visible


def test_a_key_of_a_job_makes_a_comment_of_its_own() -> None:
    assert comment_text(None, AFTER, key="linux").startswith("<!-- proctor:pull-request linux -->\n## Proctor (linux)")


def test_it_is_short_enough_whatever_the_run_is_like() -> None:
    for letter in ("<", "&", "x", "|", "字", "@a"):
        names = [f"{number}{letter * 400}" for number in range(700)]
        before = run_of(*((name, PASSED if at % 3 else FAILED) for at, name in enumerate(names)), id="one")
        gone = [(name, FAILED if at % 3 else PASSED) for at, name in enumerate(names[:500])]
        after = run_of(*gone, *((f"new{name}", FAILED) for name in names[:100]), id="two")
        text = comment_text(before, after, report=f"https://ci.example/{'r' * 300}.html")
        assert 10_000 < len(text) <= MAX_COMMENT
        assert "more cases; the reports have all of them" in text
        assert text.count("<details>") == text.count("</details>") == 1
    alone = comment_text(None, run_of(*((f"{number}{'<' * 2_000}", FAILED) for number in range(500))))
    assert len(alone) <= MAX_COMMENT


def test_words_of_an_agent_notify_no_person_and_link_nowhere() -> None:
    hostile = "ask @octocat and @org/team, fixes #12, see https://evil.example www.evil.example !7 %1 org/repo#3"
    bad = trial(single(hostile), FAILED, None, score(FAILED, 0.0, reasoning=f"{hostile} {HOSTILE} <!-- proctor:x -->"))
    good = trial(single(hostile), PASSED, None, score(PASSED, 1.0))
    text = comment_text(make_run([good], id="one"), make_run([bad], id="two"))
    body = re.sub("(?m)^- `proctor test .*$", "", text.removeprefix(marker()))  # a code span links nowhere
    assert not re.search(r"(?<!\w)@\w|#\d|://|www\.|!\d|<!--|<script", body)
    assert "octocat" in body
