"""The comparison of two runs as people read it: nothing that an agent says can act on a terminal or a page."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from reporting_samples import ERROR, FAILED, HOSTILE, PASSED, PENDING, make_run, score, single, trial

from proctor.agents.reply import Reply, ToolCall
from proctor.reporting.comparison_report import WRITERS, write_html, write_json, write_markdown
from proctor.reporting.terminal.comparison_screen import print_case, print_comparison
from proctor.reporting.terminal.screen import StreamScreen
from proctor.results.comparison.alignment import align_trials
from proctor.results.comparison.compare import compare_runs
from proctor.results.comparison.comparison import Comparison
from proctor.results.run import Run
from proctor.results.trial import Trial

CASE = single(f"{HOSTILE[:40]}<b>|`", "Hi?")
SCORE: dict[str, Any] = {"evaluator": "<i>Tone|`", "reasoning": HOSTILE}
BEFORE = trial(CASE, PASSED, None, score(**SCORE), replies=(Reply("fine", (ToolCall("pay", {"to": "a"}),)),))
AFTER = trial(
    CASE, FAILED, None, score(FAILED, 0.0, **SCORE), replies=(Reply(HOSTILE, (ToolCall("pay", {"to": HOSTILE}),)),)
)


def comparison() -> Comparison:
    return compare_runs(make_run([BEFORE], id="<one>", name="<u>|"), make_run([AFTER], id="two"))


def shown(kind: str) -> str:
    out = io.StringIO()
    if kind == "terminal":
        print_comparison(comparison(), StreamScreen(out), verbose=True)
    elif kind == "case":
        print_case(align_trials(BEFORE, AFTER), "one", "two", StreamScreen(out))
    else:
        WRITERS[kind](comparison(), out)
    return out.getvalue()


@pytest.mark.parametrize("kind", ["terminal", "case", "md", "html"])
def test_hostile_words_are_shown_and_do_nothing(kind: str) -> None:
    text = shown(kind)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "pay" in text
    if kind == "html":
        assert "<script>alert" not in text
        assert "<i>Tone" not in text
    if kind == "md":
        assert "<script>" not in text
        assert all(line.startswith("|") and line.endswith("|") for line in text.splitlines() if "Tone" in line)


def test_a_terminal_without_unicode_gets_plain_arrows() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    print_comparison(comparison(), StreamScreen(stream))
    stream.flush()
    assert b"1/1 -> 0/1" in raw.getvalue()
    assert b"\\u2192" not in raw.getvalue()


def test_the_json_is_ascii_and_says_everything_about_a_case() -> None:
    out = io.StringIO()
    write_json(comparison(), out)
    assert out.getvalue().isascii()
    assert '"kind": "argument"' in out.getvalue()


def test_quiet_is_one_sentence() -> None:
    out = io.StringIO()
    print_comparison(comparison(), StreamScreen(out), quiet=True)
    assert out.getvalue().count("\n") == 1


def test_what_many_cases_have_in_common_is_said_once() -> None:
    """Not 26 times in a row, in any of the reports; which case waits for what stays clear."""
    waits, crashed = "a person reads the poem", "the judge timed out"

    def run(*rest: Trial) -> Run:
        waiting = [trial(f"poem-{n}", PENDING, "x", score(PENDING, None, "Human", reasoning=waits)) for n in range(26)]
        return make_run([trial("ok", PASSED, "yes", score()), *waiting, *rest])

    def broken(name: str) -> Trial:
        return trial(name, ERROR, "x", score(ERROR, None, "Judge", reasoning=crashed))

    only = compare_runs(run(), run())
    for text in texts_of(only):
        assert text.count(waits) == 1
        assert text.count("poem-25") == 1
    both = compare_runs(run(broken("a"), broken("b")), run(broken("a"), broken("b")))
    for text in texts_of(both):
        assert text.count(waits) == text.count(crashed) == 1
        assert text.count("(1)") == 27
        assert text.count("(2)") == 3


def texts_of(comparison: Comparison) -> list[str]:
    """The comparison as Markdown, HTML without tags, and on a terminal."""
    out = [io.StringIO() for _ in range(3)]
    write_markdown(comparison, out[0])
    write_html(comparison, out[1])
    print_comparison(comparison, StreamScreen(out[2]), verbose=True)
    page = out[1].getvalue()
    return [out[0].getvalue(), re.sub("<[^>]*>", " ", page[page.index("<main") :]), out[2].getvalue()]
