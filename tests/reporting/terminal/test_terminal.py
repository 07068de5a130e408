from __future__ import annotations

import html
import io
import os
import re
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reporting_samples import (
    ERROR,
    FAILED,
    HOSTILE,
    PASSED,
    make_run,
    matches_golden,
    repeated_run,
    score,
    small_run,
    trial,
)

from proctor.reporting.terminal.progress import (
    LiveTerminal,
    PlainTerminal,
    choose_terminal,
    print_loading,
    terminal_svg,
)
from proctor.reporting.terminal.run_text import NameColumn, print_trial
from proctor.reporting.terminal.screen import (
    SafeStream,
    StreamScreen,
    cut_middle,
    display_width,
    escape_control,
    escape_unencodable,
    fold,
)
from proctor.results.run import Run
from proctor.results.verdict import verdict
from proctor.running.settings import WorkerListener, WorkerState


class FakeTerminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def narrate(run: Run, listener: object) -> None:
    listener.started(run, len(run.summaries), 0)
    for each in run.trials:
        listener.trial_done(each)
    listener.finished(run, verdict(run))


def printed(run: Run, **options: bool) -> str:
    out = io.StringIO()
    narrate(run, PlainTerminal(out, environ={}, **options))
    return out.getvalue()


def on_bytes(run: Run, encoding: str) -> str:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, newline="\n")
    narrate(run, PlainTerminal(stream, environ={}))
    stream.flush()
    return raw.getvalue().decode(encoding)


def test_a_small_run_looks_as_recorded() -> None:
    assert matches_golden("terminal.txt", printed(small_run()))


def on_terminal(width: int, encoding: str = "utf-8") -> str:
    class Narrow(FakeTerminal):
        pass

    Narrow.encoding = encoding
    stream, run = Narrow(), repeated_run()
    terminal = PlainTerminal(stream, environ={"COLUMNS": str(width), "NO_COLOR": "1"})
    terminal.started(replace(run, summaries=[]), len(run.summaries), 0)
    for each in run.trials:
        terminal.trial_done(each)
    terminal.finished(run, verdict(run))
    return stream.getvalue()


@pytest.mark.parametrize("width", [60, 80, 200])
def test_a_run_on_a_terminal_of_any_width_looks_as_recorded(width: int) -> None:
    assert matches_golden(f"terminal_{width}.txt", on_terminal(width))


@pytest.mark.parametrize("width", [60, 80, 200])
def test_no_line_is_wider_than_the_terminal_and_no_word_is_broken(width: int) -> None:
    text = on_terminal(width)
    whole, parts = (set(re.split(r"[\s(,=]+", told)) for told in (on_terminal(100_000), text))

    assert max(map(display_width, text.splitlines())) <= width
    assert {word for word in parts - whole if "…" not in word and set(word) != {"─"}} == set()
    assert "proctor show 20260101-000000-cafe00" in text


def test_the_picture_of_a_run_shows_whole_lines() -> None:
    run = repeated_run()
    svg = terminal_svg(run, verdict(run), title="proctor", command="proctor test", width=76)
    words = set(html.unescape(re.sub(r"<[^>]*>", " ", svg[svg.index("</defs>") :])).replace("\xa0", " ").split())

    for whole in (
        "ExpectedTools",
        "orders/order-that-never-came-and-must-be-refunded-in-full",
        "20260101-000000-cafe00",
    ):
        assert whole in words


def test_a_name_that_does_not_fit_loses_its_middle() -> None:
    assert "orders/order-that-nev…-be-refunded-in-full 0/5 passed" in on_terminal(60)
    assert "orders/order-that-ne...be-refunded-in-full 0/5 passed" in on_terminal(60, "ascii")
    assert "orders/order-that-never-came-and-must-be-refunded-in-full 0/5 passed" in on_terminal(80)


@given(st.text(st.characters(codec="utf-8"), max_size=80), st.integers(2, 40))
def test_a_shortened_name_fits_and_keeps_both_ends(text: str, room: int) -> None:
    cut = cut_middle(text, room)

    assert cut == text or display_width(cut) <= max(room, 5)
    assert cut[:1] == text[:1]
    assert cut[-1:] == text[-1:]


@given(st.text("ab 日é-", max_size=120), st.integers(4, 40))
def test_folded_text_has_the_same_words_in_lines_that_fit(text: str, room: int) -> None:
    lines = fold(text, room)

    assert all(display_width(line) <= room for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())
    if all(display_width(word) <= room for word in text.split()) and not text.startswith(" "):
        assert [word for line in lines for word in line.split()] == text.split()


def test_quiet_leaves_only_the_verdicts() -> None:
    lines = printed(small_run(), quiet=True).splitlines()

    assert lines == [
        "FAILED  support: 1 of 5 cases passed; 1 ended in errors",
        "FAILED  booking: 1 of 2 cases passed",
        "",
        "FAILED  2 of 2 suites failed; support: 1 of 5 cases passed; 1 ended in errors",
    ]


def test_verbose_explains_passing_trials_too() -> None:
    run = make_run([trial("hours", PASSED, "At nine.", score(reasoning="both say nine"))])

    assert "both say nine" in printed(run, verbose=True)
    assert "both say nine" not in printed(run)


def test_a_failure_tells_expected_got_calls_and_reason_where_it_happens() -> None:
    text = printed(small_run())
    block = text[text.index("FAIL   support/refund-policy") : text.index("ERROR  support/tone")]

    for part in (
        "You can return items within 30 days.",
        "We have no refunds.",
        'lookup_policy(topic="shipping") -> {"text": "Ships in 2 days."}',
        "the answers differ at character 1",
    ):
        assert part in block


def test_repeats_carry_their_number() -> None:
    text = printed(make_run([trial("a"), trial("a", number=2)]))

    assert re.search(r"^PASS   support/a +0\.12s", text, re.MULTILINE)
    assert re.search(r"^PASS   support/a #2 +0\.12s", text, re.MULTILINE)
    assert "pass^2 1.00" in text


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8"])
def test_no_encoding_breaks_the_terminal(encoding: str) -> None:
    run = make_run([trial("naïve-日本", FAILED, f"Größe ✓ 日本 {HOSTILE}")], note="abgebrochen…")

    text = on_bytes(run, encoding)

    assert "naïve-日本" in text if encoding == "utf-8" else "\\u65e5\\u672c" in text
    assert "FAILED" in text


def test_a_stream_of_unknown_encoding_gets_ascii() -> None:
    assert escape_unencodable("日", "no-such-encoding") == "\\u65e5"


def test_nothing_an_agent_says_can_act_on_the_terminal() -> None:
    hostile = trial(
        f"id{HOSTILE}",
        FAILED,
        HOSTILE,
        score(FAILED, 0.0, f"Ev{HOSTILE}", reasoning=HOSTILE),
        suite=f"s{HOSTILE}",
        warnings=(HOSTILE,),
        reason=HOSTILE,
    )
    text = printed(make_run([hostile], note=HOSTILE, store=HOSTILE, id=HOSTILE), verbose=True)

    assert set(re.findall(r"[\x00-\x1f\x7f-\x9f\u202e\ud800-\udfff]", text)) == {"\n"}
    assert "\\x1b[2J" in text


@given(st.text(st.characters(codec=None), max_size=200))
def test_visible_text_holds_no_control_characters_and_keeps_the_rest(text: str) -> None:
    safe = escape_control(text)

    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]", safe)
    if text.isascii() and text.isprintable():
        assert safe == text
    safe.encode("utf-8")


def test_a_name_with_line_breaks_stays_on_one_line() -> None:
    text = printed(make_run([trial("two\nlines")]))

    assert "support/two\\nlines" in text


def test_a_huge_answer_is_cut_and_its_length_shown() -> None:
    text = printed(make_run([trial("big", FAILED, "x" * 10_000_000)]))

    assert len(text) < 3_000
    assert "(10,000,000 characters in all)" in text


def test_the_lines_left_out_of_an_answer_are_not_miscounted() -> None:
    lines = [f"line {number}" for number in range(100)]

    assert "... (1 more line)" in printed(make_run([trial("a", FAILED, "\n".join(lines[:13]))]))
    long = printed(make_run([trial("a", FAILED, "\n".join(lines))]))
    assert "... (789 characters in all)" in long
    assert "more lines" not in long


def test_what_follows_the_names_stays_in_line_also_after_long_and_wide_ones() -> None:
    names = ["short", "a-name-longer-than-the-column-is-wide", "then-short", "日本語"]
    text = printed(make_run([trial(name) for name in names]))

    lines = [line for line in text.splitlines() if line.startswith("PASS ")]
    places = [line.index(" 0.12s") + (3 if "日本語" in line else 0) for line in lines]
    assert places[1] == places[2] == places[3]


def test_the_summary_does_not_call_a_need_what_only_informs() -> None:
    informs = replace(score(FAILED, 0.2, "BLEU"), report_only=True)
    text = printed(make_run([trial("a", PASSED, "x", score(), informs)]))

    assert re.search(r"^  BLEU +0\.200 \[.*\]  report only +1 failed$", text, re.MULTILINE)
    assert re.search(r"^  ExactMatch +1\.000 \[.*\]  threshold 0\.5 ", text, re.MULTILINE)


def test_how_to_go_on_after_an_interruption_is_said_once() -> None:
    told_already = make_run([trial("a")], interrupted=True, note="interrupted; run it with --resume to continue")
    cut_off = make_run([trial("a")], interrupted=True, note="the run was cut off")

    for run in (told_already, cut_off):
        assert printed(run).count("--resume") == 1
        assert "1 of 1 trial" in printed(run)


def test_the_name_of_a_usual_metric_stands_on_the_line_of_its_reason() -> None:
    run = make_run([trial("a", FAILED, "x", score(FAILED, 0.0, "tool_trajectory_avg_score", reasoning="other calls"))])

    assert re.search(r"^ +tool_trajectory_avg_score  0\.00 < 0\.50: other calls$", printed(run), re.MULTILINE)


def test_an_answer_of_many_lines_is_cut() -> None:
    text = printed(make_run([trial("poem", FAILED, "\n".join("abcdefghij"[:1] * 200))]))

    assert "more lines)" in text
    assert len(text.splitlines()) < 60


def test_a_score_just_below_its_threshold_is_shown_as_below_it() -> None:
    text = printed(make_run([trial("close", FAILED, "x", score(FAILED, 0.49996))]))

    assert "0.49996 < 0.50000" in text


def test_colour_needs_a_terminal_and_no_objection() -> None:
    def coloured(stream: io.StringIO, environ: dict[str, str]) -> bool:
        narrate(make_run([trial("a")]), PlainTerminal(stream, environ=environ))
        return "\x1b[" in stream.getvalue()

    assert coloured(FakeTerminal(), {})
    assert not coloured(FakeTerminal(), {"NO_COLOR": "1"})
    assert not coloured(FakeTerminal(), {"TERM": "dumb"})
    assert not coloured(io.StringIO(), {})
    assert coloured(io.StringIO(), {"FORCE_COLOR": "1"})
    assert not coloured(io.StringIO(), {"FORCE_COLOR": "1", "NO_COLOR": "1"})
    assert not coloured(FakeTerminal(), {"FORCE_COLOR": "0"})


def test_a_bar_needs_a_real_terminal_even_where_colour_is_forced() -> None:
    assert isinstance(choose_terminal(io.StringIO(), environ={"FORCE_COLOR": "1", "TERM": "xterm"}), PlainTerminal)


def test_the_bar_of_a_narrow_terminal_leaves_out_what_does_not_fit() -> None:
    terminal = LiveTerminal(FakeTerminal(), environ={"TERM": "xterm"})
    terminal._planned = 40
    terminal._counts.update({PASSED: 11, FAILED: 1})

    words = "".join(span if isinstance(span, str) else span[0] for span in terminal._status(12, 6.0, 34))

    assert words == "12/40  11 passed, 1 failed  2.0/s"


def test_what_is_loaded_is_said_on_a_terminal() -> None:
    out = io.StringIO()

    print_loading(out, ["app/agent.py:agent", "fast=my.module:agent", "http://localhost:80/x", "cmd:ls", None], {})

    assert out.getvalue() == "loading agent.py, my.module…\n"


def test_a_warning_is_said_once_and_a_flood_is_counted() -> None:
    trials = [trial(f"c{n}", warnings=("the same", f"warning {n}")) for n in range(50)]

    text = printed(make_run(trials))

    assert text.count("the same") == 1
    assert "31 more warnings not shown" in text


def test_an_interrupted_run_says_how_to_go_on() -> None:
    text = printed(make_run([trial("a")], interrupted=True, note="interrupted by Ctrl-C"))

    assert "--resume" in text


def test_an_empty_run_is_printed_without_a_crash() -> None:
    assert "ERROR   nothing ran that could pass or fail" in printed(make_run([]))


def test_the_run_says_where_it_is_saved() -> None:
    assert "proctor show 20260101-000000-cafe" in printed(make_run([trial("a")]))
    assert "proctor show" not in printed(make_run([trial("a")], store=None))


def test_a_closed_pipe_stops_the_output_and_not_the_run() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", encoding="utf-8") as stream:
        narrate(make_run([trial("a", FAILED) for _ in range(50)]), PlainTerminal(stream))


def test_a_closed_stream_is_no_crash() -> None:
    stream = io.StringIO()
    stream.close()

    narrate(small_run(), PlainTerminal(stream, environ={}))
    SafeStream(stream).flush()


@pytest.mark.process
def test_piping_into_head_leaves_no_complaint() -> None:
    script = (
        "import sys; from proctor.reporting.terminal.screen import StreamScreen\n"
        "screen = StreamScreen(sys.stdout)\n"
        "for _ in range(50_000): screen.line('a line of some length')\n"
        "screen.flush()"
    )
    command = f'"{sys.executable}" -c "$SCRIPT" | head -n 1'
    done = subprocess.run(
        ["sh", "-c", command], env={**os.environ, "SCRIPT": script}, capture_output=True, text=True, check=False
    )

    assert done.stdout == "a line of some length\n"
    assert done.stderr == ""


def test_lines_wrap_to_a_known_width_under_their_column() -> None:
    out = io.StringIO()
    screen = StreamScreen(out, width=60)
    print_trial(screen, trial("long", FAILED, "word " * 60), verbose=False, warnings=(), names=NameColumn(screen))

    lines = out.getvalue().splitlines()[1:]
    assert max(len(line) for line in lines) <= 60
    assert any(line.startswith(" " * 19 + "word") for line in lines)


def test_the_terminal_fits_the_stream() -> None:
    assert isinstance(choose_terminal(io.StringIO(), environ={}), PlainTerminal)
    assert isinstance(choose_terminal(FakeTerminal(), quiet=True, environ={}), PlainTerminal)
    assert isinstance(choose_terminal(FakeTerminal(), environ={"TERM": "dumb"}), PlainTerminal)
    assert isinstance(choose_terminal(FakeTerminal(), environ={"TERM": "xterm"}), LiveTerminal)


def test_a_terminal_that_is_not_unicode_gets_plain_lines() -> None:
    class Latin(FakeTerminal):
        encoding = "latin-1"

    assert isinstance(choose_terminal(Latin(), environ={"TERM": "xterm"}), PlainTerminal)


def test_the_live_display_shows_failures_and_the_summary_but_not_each_pass() -> None:
    stream = FakeTerminal()
    narrate(small_run(), choose_terminal(stream, environ={"TERM": "xterm", "COLUMNS": "100"}))
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())

    assert "FAIL   support/refund-policy" in text
    assert "We have no refunds." in text
    assert "PASS   support/opening-hours" not in text
    assert "FAILED  2 of 2 suites failed; support: 1 of 5 cases passed" in text


def test_the_live_display_tells_counts_rate_cost_and_time_left() -> None:
    terminal = LiveTerminal(FakeTerminal(), environ={"TERM": "xterm"})
    terminal._planned = terminal._rest.planned = 40
    terminal._counts.update({PASSED: 11, FAILED: 1, ERROR: 0})
    terminal._cost = 0.25
    for number in range(12):
        terminal._rest.start(number, number / 2)
        terminal._rest.finish(number, (number + 1) / 2)

    words = "".join(span if isinstance(span, str) else span[0] for span in terminal._status(12, 6.0, 80))

    assert words == "12/40  11 passed, 1 failed  2.0/s · $0.2500 · 14s left"


def test_the_live_display_counts_what_is_in_flight() -> None:
    """Three trials of four ended after a second each; the last one has run for a minute."""
    terminal = LiveTerminal(FakeTerminal(), environ={"TERM": "xterm"})
    terminal._planned = terminal._rest.planned = 4
    terminal._counts.update({PASSED: 3})
    for number in range(4):
        terminal._rest.start(number, 0.0)
    for number in range(3):
        terminal._rest.finish(number, 1.0)

    words = "".join(span if isinstance(span, str) else span[0] for span in terminal._status(3, 60.0, 80))

    assert words == "3/4  3 passed  3.0/min · 1 left, slowest running for 60s"


def test_the_live_display_of_a_resumed_run_counts_stored_trials() -> None:
    terminal = LiveTerminal(FakeTerminal(), environ={"TERM": "xterm"})
    terminal._planned, terminal._stored = 40, 10
    terminal._counts.update({PASSED: 2})

    words = "".join(span if isinstance(span, str) else span[0] for span in terminal._status(12, 1.0, 80))

    assert words == "12/40  10 stored, 2 passed  2.0/s", "two trials say nothing about the rest"


def test_the_live_display_lets_no_escape_sequence_through() -> None:
    stream = FakeTerminal()
    narrate(
        make_run([trial("evil", FAILED, HOSTILE)]), choose_terminal(stream, verbose=True, environ={"TERM": "xterm"})
    )

    assert "\x1b[2J" not in stream.getvalue()
    assert "\x1b]0;" not in stream.getvalue()
    assert "\\x1b[2J" in stream.getvalue()


def shown_workers(states: list[WorkerState]) -> str:
    """What stands below the bar, as text."""
    from rich.console import Console

    terminal = LiveTerminal(FakeTerminal(), environ={"TERM": "xterm"})
    terminal.workers(lambda: states)
    console = Console(file=io.StringIO(), width=120)
    console.print(terminal._bar())
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_the_live_display_shows_each_worker_with_its_trials_and_failures() -> None:
    lines = shown_workers(
        [
            WorkerState("w0", under_way=5, done=1230),
            WorkerState("w1", under_way=1, done=20, failed=2, lost=1),
            WorkerState("w2", status="refused: has Proctor 0.0.9 \x1b[2J"),
        ]
    )

    assert re.search(r"worker w0 +5 running, 1,230 done *\n", lines)
    assert "1 running, 20 done, 2 without an answer, connection lost 1 time" in lines
    assert "refused: has Proctor 0.0.9" in lines
    assert "\x1b[2J" not in lines


def test_many_workers_are_summed_up_in_one_line() -> None:
    lines = shown_workers([WorkerState(f"w{number}", under_way=2, done=10) for number in range(40)])

    assert re.search("40 of 40 workers +80 running, 400 done", lines)


def test_what_happens_to_workers_is_shown_on_any_terminal_but_a_quiet_one() -> None:
    for quiet in (False, True):
        stream = io.StringIO()
        terminal = PlainTerminal(stream, quiet=quiet, environ={})
        terminal.notice("the worker w1 ended")
        assert isinstance(terminal, WorkerListener)
        assert ("note: the worker w1 ended" in stream.getvalue()) is not quiet
    live = FakeTerminal()
    LiveTerminal(live, environ={"TERM": "xterm"}).notice("the worker w1 ended")
    assert "the worker w1 ended" in live.getvalue()
