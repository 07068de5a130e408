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
    assert "1 of 4 cases broken, 1 fixed" in sentence
    assert "[Open the report](https://ci.example/report.html)" in sentence
    assert "### Broken (1)\n\n- **[support/a](https://ci.example/report.html#trial-0)** 1/1 → 0/1" in text
    assert "### Fixed (1)\n\n- **[support/b](https://ci.example/report.html#trial-1)** 0/1 → 1/1" in text
    assert "Cost per trial $0.0100 → $0.0300 (×3.00)" in text.replace("\\", "")
    assert "Time per trial" in text
    assert "`proctor test support.yaml::a`" in text
    page = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    assert page.count("<details>") == page.count("</details>") == 1
    assert page.index("<details>") < page.index("Still failing (1)") < page.index("</details>")


def test_without_an_earlier_run_it_says_so_and_what_failed() -> None:
    text = comment_text(None, run_of(("a", PASSED), ("b", FAILED)))
    assert "No earlier run to compare with." in text
    assert "### Failures (1)" in text
    assert "**support/b** 0/1: ExactMatch 0.00 &lt; 0.50: the answers differ" in text


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
