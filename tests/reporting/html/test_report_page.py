from __future__ import annotations

import re
from html.parser import HTMLParser
from importlib import resources
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reporting_samples import (
    ERROR,
    FAILED,
    HOSTILE,
    PASSED,
    SKIPPED,
    OnePass,
    make_run,
    report,
    score,
    single,
    small_run,
    trial,
)

from proctor.agents.reply import Reply, ToolCall, Usage
from proctor.cases.matchers import Equals, Ignore
from proctor.cases.suite import Case, Expected, ExpectedCall, NamedData, Turn
from proctor.reporting.html import environment, run_view
from proctor.reporting.html import report_page as html
from proctor.reporting.html.environment import percent, short

VOID = {"meta", "link", "input", "br"}


class Page(HTMLParser):
    """The page as a browser takes it apart; says which tags were left open or closed out of turn."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.crossed: list[str] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.crossed.append(tag)

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def all(self, tag: str, kind: str = "") -> list[dict[str, str]]:
        return [found for name, found in self.tags if name == tag and kind in ["", *found.get("class", "").split()]]

    @property
    def words(self) -> str:
        return " ".join("".join(self.text).split())


def page(*trials: object, **rest: object) -> Page:
    return Page(report(html, make_run(list(trials), **rest)))  # type: ignore[arg-type]


def hostile_run() -> object:
    case = Case(
        id=f"id {HOSTILE}\"'",
        turns=(Turn(HOSTILE, Expected(output=HOSTILE, tools=(ExpectedCall(HOSTILE, {HOSTILE: Equals(HOSTILE)}),))),),
        description=HOSTILE,
        tags=(HOSTILE,),
    )
    call = ToolCall(HOSTILE, {HOSTILE: HOSTILE, "</pre>": 1}, HOSTILE, duration_ms=float("nan"))
    raw = ToolCall(HOSTILE, raw_arguments=HOSTILE, error=HOSTILE)
    bad = trial(
        case,
        FAILED,
        None,
        score(FAILED, 0.0, HOSTILE, reasoning=HOSTILE, details={HOSTILE: HOSTILE}),
        replies=(Reply(HOSTILE, (call, raw), retrieval_context=(HOSTILE,)),),
        suite=f"s {HOSTILE}\" onload='x'",
        warnings=(HOSTILE,),
        reason=HOSTILE,
    )
    return make_run([bad], note=HOSTILE, environment={"proctor_version": HOSTILE, HOSTILE: HOSTILE}, id=HOSTILE)


@pytest.mark.parametrize("run", [small_run(), hostile_run(), make_run([], finished_at=None)])
def test_every_element_is_closed_where_it_should_be(run: object) -> None:
    read = Page(report(html, run))

    assert read.crossed == []
    assert read.open == []


def test_the_page_asks_nobody_for_anything() -> None:
    text = report(html, small_run())
    read = Page(text)

    policy = next(found["content"] for found in read.all("meta") if "http-equiv" in found)
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:")
    addresses = [value for _, found in read.tags for name, value in found.items() if name in ("href", "src", "action")]
    assert all(address.startswith(("#", "data:")) for address in addresses)
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest", text)
    assert text.count("http") == text.count("http-equiv") + text.count("http://www.w3.org/2000/svg")


def test_nothing_from_outside_becomes_markup() -> None:
    text = report(html, hostile_run())
    read = Page(text)

    assert len(read.all("script")) == 1
    assert read.all("img") == []
    assert not [name for _, found in read.tags for name in found if name.startswith("on")]
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e]", text)
    assert "<script>alert(1)</script>" in read.words
    text.encode("utf-8")


@given(st.text(max_size=80))
def test_escaped_text_reads_as_itself_inside_elements_and_attributes(text: str) -> None:
    template = environment._environment().from_string('<p title="{{ text }}">{{ text }}</p>')
    read = Page(template.render(text=text))

    assert [tag for tag, _ in read.tags] == ["p"]
    assert read.tags[0][1]["title"] == "".join(read.text)
    if text.isprintable():
        assert "".join(read.text) == text


@given(st.text(max_size=300), st.integers(1, 200))
def test_a_cut_text_says_how_long_it_was(text: str, limit: int) -> None:
    note = f"{len(text):,} characters in all"
    blocks = environment._environment().get_template("reporting/templates/macros.html").module
    assert (note in Page(blocks.text_block(text, limit)).words) == (len(text) > limit)
    assert (note in short(text, limit)) == (len(text) > limit) or note in text


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_a_length_in_a_style_is_always_on_the_scale(number: float) -> None:
    assert 0.0 <= float(percent(number).removesuffix("%")) <= 100.0


def test_the_verdict_comes_first_with_its_reason() -> None:
    text = report(html, small_run())

    assert re.search(
        r"<h1>Failed</h1>\s*<p class=\"reason\">"
        r"2 of 2 suites failed; support: 1 of 5 cases passed; 1 ended in errors</p>",
        text,
    )


def test_each_suite_tells_counts_pass_rate_with_interval_and_reliability() -> None:
    words = page(trial("a"), trial("a", FAILED, number=2), trial("b"), trial("b", number=2)).words

    assert "50.0% of 2 cases that passed or failed, 95 % interval [9.5%, 90.5%]" in words
    assert "pass^20.50 all 2 trials pass" in words
    assert "pass@21.00 at least one passes" in words


def test_each_evaluator_has_its_mean_interval_and_threshold() -> None:
    table = report(html, small_run()).partition('<table class="means">')[2].partition("</table>")[0]

    row = next(line for line in table.splitlines() if "ExpectedTools" in line)
    assert "<b>0.250</b> <small>[0.015, 0.882]</small>" in row
    assert "<td>0.5</td>" in row
    assert "no scores" in next(line for line in table.splitlines() if "Faithfulness" in line)


def test_the_grid_has_a_row_per_case_and_a_cell_per_evaluator() -> None:
    grid = report(html, small_run()).partition('<table class="grid">')[2].partition("</table>")[0]
    heads = grid.partition("</thead>")[0].count("<th ")
    rows = re.findall(r"<tr data-row.*?</tr>", grid, re.DOTALL)

    assert len(rows) == 6
    assert {len(re.findall(r"<t[hd]", row)) for row in rows} == {heads}
    assert re.search(r'cell failed"[^>]*><span aria-hidden="true">✗</span> 0.25', grid)


def test_a_repeated_case_shows_its_mean_and_links_to_every_trial() -> None:
    read = page(trial("a"), trial("a", FAILED, number=2))

    assert [dot["href"] for dot in read.all("a", "dot")] == ["#trial-0", "#trial-1"]
    assert "0.50 1/2" in read.words


def test_a_case_that_failed_five_times_is_listed_once_with_a_link_to_an_example() -> None:
    text = report(html, make_run([trial("a", FAILED, number=n) for n in range(1, 6)]))
    listed = text[text.index('<section id="failures">') : text.index('<section id="evaluators">')]

    assert listed.count("<li>") == 1
    assert "<b>support/a</b> 0/5 passed" in listed
    assert '5 times: <a href="#trial-0">ExactMatch 0.00 &lt; 0.50</a>' in listed


def test_what_is_skipped_does_not_count_against_a_case() -> None:
    skipped = score(SKIPPED, None, "Contains", turn=1)
    assert "1/2" not in page(trial("a", PASSED, "x", score(evaluator="Contains", turn=0), skipped)).words


def test_every_link_leads_somewhere() -> None:
    read = Page(report(html, small_run()))
    places = {found["id"] for _, found in read.tags if "id" in found}

    assert len(places) == len([1 for _, found in read.tags if "id" in found])
    assert {found["href"][1:] for found in read.all("a")} <= places


def test_expected_and_actual_tool_calls_stand_side_by_side() -> None:
    wanted = (
        ExpectedCall("book", {"day": Equals("Friday"), "note": Ignore(), "seats": Equals(2)}),
        ExpectedCall("pay"),
    )
    calls = (ToolCall("book", {"day": "Sunday", "spam": 1}, {"ok": True}), ToolCall("search", {"q": "x"}))
    text = report(
        html,
        make_run([trial(single("t", tools=wanted), FAILED, None, score(FAILED, 0.0), replies=(Reply("x", calls),))]),
    )
    items = re.findall(r"<li class=\"(differs|not-expected|missing)\">(.*?)</li>", text, re.DOTALL)

    assert [kind for kind, _ in items] == ["differs", "not-expected", "missing"]
    words = Page(items[0][1]).words
    assert "'Friday' → 'Sunday'" in words
    assert "seats ✗ missing, expected 2" in words.replace("seats✗", "seats ✗")
    assert "spam1 ✗ not expected" in words
    assert '"ok": true' in words
    assert "not called" in Page(items[2][1]).words


def test_that_no_tool_may_be_called_is_shown() -> None:
    assert "No calls, as expected." in page(trial(single("quiet", tools=()), PASSED)).words
    loud = trial(single("loud", tools=()), FAILED, None, score(FAILED), replies=(Reply("x", (ToolCall("a"),)),))
    assert "No calls were expected." in page(loud).words


def test_turns_scores_time_tokens_and_cost_are_shown() -> None:
    usage = Usage(1_200, 34, 0.0125, 3)
    turns = (Turn("one", Expected(output="uno")), Turn("two"), Turn("three"))
    replies = (Reply("uno", usage=usage, duration_ms=1_500.0), Reply("", outputs=(NamedData("mood", {"glad": True}),)))
    conversation = trial(
        Case(id="talk", turns=turns), FAILED, None, score(turn=0), score(FAILED, 0.2, turn=1), replies=replies
    )
    words = page(conversation, id="r").words

    assert "Turn 1" in words
    assert "Turn 3 not reached" in words
    assert "1,200 in, 34 out" in words
    assert "$0.0125" in words
    assert "1.50s" in words
    assert '"glad": true' in words


def test_an_instrument_that_broke_is_not_shown_as_a_zero() -> None:
    text = report(html, make_run([trial("tone", ERROR, "x", score(ERROR, None, "Judge", reasoning="timed out"))]))

    assert '<span class="cell error">–</span>' in text
    assert "timed out" in text


def test_a_huge_answer_is_cut_with_its_length() -> None:
    text = report(html, make_run([trial("big", FAILED, "y" * 10_000_000), trial("fine", PASSED, "z" * 10_000_000)]))

    assert len(text) < 60_000
    assert "10,000,000 characters in all; the first 10,000 are shown." in text
    assert "10,000,000 characters in all; the first 2,000 are shown." in text


def test_a_thousand_calls_are_counted_and_not_shown() -> None:
    calls = tuple(ToolCall(f"t{n}", {"n": n}) for n in range(1_000))
    case = single("busy", tools=(ExpectedCall("t5", {"n": Equals(5)}),))
    text = report(html, make_run([trial(case, PASSED, None, score(), replies=(Reply("x", calls),))]))

    assert "and 901 more calls." in text
    assert len(text) < 100_000


def test_trials_are_never_held_all_at_once() -> None:
    alive: list[int] = []

    class Counted(str):
        def __del__(self) -> None:
            alive.remove(1)

    def make(index: int) -> object:
        alive.append(1)
        assert len(alive) < 5
        return trial(f"c{index}", PASSED, Counted(f"answer {index}"))

    trials = [trial(f"c{index}") for index in range(200)]
    stream = OnePass(200, make)
    text = report(html, make_run(trials, stream=stream))

    assert stream.made == 200
    assert "answer 199" in text


def test_the_page_of_a_large_run_tells_what_failed_in_full_and_says_what_it_leaves_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(html, "MAX_FULL_TRIALS", 3)
    monkeypatch.setattr(run_view, "MAX_GRID_ROWS", 4)
    run = make_run([trial(f"case-{n}", FAILED if n in (5, 7) else PASSED) for n in range(9)])

    text = report(html, run)
    page = Page(text)

    ids = [found["id"] for tag, found in page.tags if found.get("id", "").startswith("trial-")]
    assert ids == ["trial-0", "trial-5", "trial-7"]
    assert {found["href"] for found in page.all("a") if found["href"].startswith("#trial-")} == {f"#{at}" for at in ids}
    assert len([found for found in page.all("tr") if "data-row" in found]) == 4
    assert "Showing the worst 3 of 9 trials." in text
    assert "and 5 more cases; those listed are the worst." in text
    assert page.crossed == page.open == []


def test_filters_wait_for_the_script_and_everything_else_does_without() -> None:
    read = Page(report(html, small_run()))

    (bar,) = read.all("div", "filter")
    assert "hidden" in bar
    assert {found["data-toggle"] for found in read.all("button") if "data-toggle" in found} == {
        "passed",
        "failed",
        "error",
        "skipped",
        "pending",
    }
    assert len(read.all("details", "trial")) == 9


def test_headings_go_down_one_level_at_a_time_and_tables_have_headers() -> None:
    read = Page(report(html, small_run()))
    levels = [int(tag[1]) for tag, _ in read.tags if re.fullmatch(r"h\d", tag)]

    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert all("scope" in found for found in read.all("th"))


def _colours(css: str) -> dict[str, str]:
    return dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", css))


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", [0, 1])
def test_text_stands_out_from_what_is_behind_it_in_both_themes(theme: int) -> None:
    css = resources.files("proctor").joinpath("reporting/assets/report.css").read_text(encoding="utf-8")
    colours = _colours(css.split("@media (prefers-color-scheme: dark)")[theme])
    pairs = [(ink, back) for ink in ("text", "quiet", "accent") for back in ("page", "card", "sunk")]
    for outcome in ("passed", "failed", "error", "skipped", "pending"):
        pairs += [(outcome, f"{outcome}-back"), (outcome, "card")]

    for ink, back in pairs:
        light, dark = sorted((_luminance(colours[ink]), _luminance(colours[back])), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, (ink, back)
