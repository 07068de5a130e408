from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from reporting_samples import (
    FAILED,
    HOSTILE,
    PASSED,
    SKIPPED,
    OnePass,
    make_run,
    matches_golden,
    report,
    score,
    single,
    small_run,
    trial,
)

from proctor.agents.reply import Reply, ToolCall
from proctor.cases.suite import ExpectedCall
from proctor.reporting.markdown import report as markdown
from proctor.reporting.markdown.ci_pages import write_step_summary
from proctor.reporting.markdown.escaping import code, fence, inline

RENDER = MarkdownIt("commonmark", {"html": True}).enable("table")


def hostile_run() -> object:
    case = single(f"id {HOSTILE}", HOSTILE, output=HOSTILE, tools=(ExpectedCall(f"a|b {HOSTILE}"),))
    bad = trial(
        case,
        FAILED,
        None,
        score(FAILED, 0.0, f"E|v {HOSTILE}", reasoning=HOSTILE),
        replies=(Reply(HOSTILE, (ToolCall(f"t`|{HOSTILE}", {"q": HOSTILE}, HOSTILE),)),),
        suite=f"s {HOSTILE}",
        warnings=(HOSTILE,),
        reason=HOSTILE,
    )
    return make_run([bad], note=HOSTILE, environment={"proctor_version": HOSTILE, HOSTILE: HOSTILE})


def test_a_small_run_reads_as_recorded() -> None:
    assert matches_golden("report.md", report(markdown, small_run()))


def test_nothing_from_outside_becomes_html_headings_links_or_tables() -> None:
    text = report(markdown, hostile_run())
    html = RENDER.render(text)

    assert "<script" not in html
    assert "<img" not in html
    assert "<a " not in html
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", text)
    assert [tag for tag in re.findall(r"<h\d>([^<]{0,12})", html) if tag == "Heading"] == []
    assert html.count("<table>") == 3


def test_every_row_of_a_table_has_as_many_cells_as_its_head() -> None:
    html = RENDER.render(report(markdown, hostile_run()))

    for table in re.findall(r"<table>.*?</table>", html, re.DOTALL):
        rows = re.findall(r"<tr>.*?</tr>", table, re.DOTALL)
        assert len({len(re.findall("<t[hd]>", row)) for row in rows}) == 1


@given(st.text(st.characters(codec="utf-8"), max_size=120))
def test_inline_text_shows_itself_and_nothing_else(text: str) -> None:
    tokens = RENDER.parseInline(f"x {inline(text)}")[0].children or []

    assert {token.type for token in tokens} <= {"text", "text_special"}


@given(st.text("`a|<# \n", max_size=60))
def test_a_fence_holds_whatever_is_inside(text: str) -> None:
    tokens = RENDER.parse(fence(text, 1_000))

    assert [token.type for token in tokens] == ["fence"]
    assert tokens[0].content == f"{text}\n"


@given(st.text("`ab *", min_size=1, max_size=40))
def test_a_code_span_holds_whatever_is_inside(text: str) -> None:
    words = " ".join(text.split())
    tokens = RENDER.parseInline(code(text))[0].children or []

    assert [token.type for token in tokens] == (["code_inline"] if words else ["text"])
    assert not words or tokens[0].content == words


def test_a_huge_answer_is_cut_with_its_length() -> None:
    text = report(markdown, make_run([trial("big", FAILED, "y" * 10_000_000), trial("fine", PASSED, "z" * 10_000_000)]))

    assert len(text) < 40_000
    assert "10,000,000 characters in all; the first 10,000 are shown." in text
    assert "10,000,000 characters in all; the first 500 are shown." in text


def test_the_tools_are_compared_by_name() -> None:
    text = report(markdown, small_run())

    assert "- **Expected tools:** `book`, `notify`\n- **Missing:** `notify`\n- **Extra:** `search`\n" in text


def test_a_turn_that_was_not_reached_says_so() -> None:
    conversation = small_run().trials[7]
    cut = make_run([trial(conversation.case, FAILED, "For which day?", reason="the agent raised KeyError")])

    assert "##### Turn 2 (not reached)" in report(markdown, cut)


def test_an_empty_run_is_reported() -> None:
    text = report(markdown, make_run([], finished_at=None, environment={}))

    assert "| Total trials | 0 |" in text
    assert "**Proctor version:** not recorded" in text


def test_the_step_summary_reads_as_recorded() -> None:
    assert matches_golden("step_summary.md", report(write_step_summary, small_run()))


def test_the_step_summary_stays_small_and_stops_reading_early() -> None:
    trials = [trial(f"c{n} {'w' * 3_000}", FAILED, "x", reason="r" * 100_000) for n in range(5_000)]
    stream = OnePass(5_000, make_run(trials).trials.__getitem__)

    text = report(write_step_summary, make_run(trials, stream=stream))

    assert len(text.encode()) < 300_000
    assert stream.made == 50
    assert "support/c999 w" in text
    assert re.search(r"^- and [0-9,]+ more$", text, re.MULTILINE)


def test_the_step_summary_names_every_failing_case_once_however_often_it_was_repeated() -> None:
    trials = [trial(f"c{n}", FAILED, number=1 + k) for n in range(25) for k in range(5)]

    text = report(write_step_summary, make_run(trials))

    for n in range(25):
        assert text.count(f"**support/c{n}** 0/5 passed: ExactMatch 0.00 &lt; 0.50") == 1
    assert text.count("- ❌ FAILED") == 25


def test_the_reasons_of_a_case_are_counted_and_one_example_is_shown() -> None:
    wrong = [trial("a", FAILED, f"{n} days", score(FAILED, 0.0, reasoning=f"got '{n}'"), number=n) for n in (1, 2, 3)]
    crashed = [trial("a", FAILED, None, number=n, reason="the agent raised KeyError: 'x'") for n in (4, 5)]
    run = make_run([*wrong, *crashed])

    for reporter in (markdown, write_step_summary):
        text = report(reporter, run)
        assert re.search(r"3 times:(\*\*)? ExactMatch 0.00 &lt; 0.50: got '1'", text)
        assert re.search(r"2 times:(\*\*)? the agent raised KeyError: 'x'", text)
    whole = report(markdown, run)
    assert whole.count("#### a ❌ FAILED 0/5 passed\n") == 1
    assert whole.count("**Example:** trial 1") == 1
    assert whole.count("**Input:**") == 1


def test_a_note_and_a_skip_are_written_once_a_case() -> None:
    skipped = [trial("old", SKIPPED, None, number=n, reason="the contract has ended") for n in (1, 2, 3)]
    noted = [trial("new", number=n, warnings=("the reply had no usage",)) for n in (1, 2, 3)]

    text = report(markdown, make_run([*skipped, *noted]))

    assert text.count("the contract has ended") == 1
    assert text.count("the reply had no usage") == 1


def test_the_step_summary_of_many_suites_stays_below_githubs_limit() -> None:
    trials = [trial("c", FAILED, "x", suite=f"{n} {'|' * 2_000}") for n in range(1_000)]

    assert len(report(write_step_summary, make_run(trials)).encode()) < 900_000


def test_the_step_summary_shows_hostile_text_as_text() -> None:
    html = RENDER.render(report(write_step_summary, hostile_run()))

    assert "<script" not in html
    assert "<a " not in html
    assert html.count("<table>") == 1
