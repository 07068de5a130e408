"""The baseline as data: what lines mean together, whatever order or merge they come in."""

from __future__ import annotations

import random
import statistics
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.gate.baseline import (
    Baseline,
    BaselineLine,
    SampleStats,
    baseline_path,
    parse_line,
    read_baseline,
    write_baseline,
    write_line,
)

LINE = BaselineLine("desk", "refund", "app.py:agent", "c", "e", "20260101-000000-aaaaaa", 10, 9)
NUMBERS = st.floats(-1e6, 1e6)
SPREADS = st.none() | st.builds(SampleStats, st.integers(1, 99), NUMBERS, st.floats(0, 1e6))
LINES = st.builds(
    lambda passes, failures, **rest: BaselineLine(trials=passes + failures, passes=passes, **rest),
    st.integers(0, 50),
    st.integers(1, 50),
    suite=st.text(max_size=9),
    case=st.text(max_size=9),
    agent=st.text(max_size=9),
    content=st.text("ab", min_size=1, max_size=2),
    evaluators=st.text("ab", min_size=1, max_size=2),
    run=st.text("123", min_size=1, max_size=3),
    since=st.text("123", max_size=3),
    score=SPREADS,
    seconds=SPREADS,
)


@given(LINES)
def test_a_line_is_read_back_as_it_was_written(line: BaselineLine) -> None:
    text = write_line(line)
    assert text.count("\n") == 1
    again = parse_line(text)
    assert write_line(again) == text
    assert replace(again, score=None, seconds=None) == replace(line, score=None, seconds=None)


@given(st.lists(LINES, max_size=8), st.randoms(use_true_random=False))
def test_order_and_repeated_lines_do_not_matter(lines: list[BaselineLine], rng: random.Random) -> None:
    shuffled = [*lines, *lines[:3]]
    rng.shuffle(shuffled)
    one, other = Baseline(lines), Baseline(shuffled)
    assert [line.key for line in one.lines] == sorted({line.key for line in lines})
    assert [line.key for line in other.lines] == [line.key for line in one.lines]


def test_runs_add_up() -> None:
    second = replace(LINE, run="20260102-000000-bbbbbb", trials=5, passes=5)
    found = Baseline([LINE, second]).lookup(LINE.identity)
    assert found.record is not None
    assert (found.record.trials, found.record.passes, len(found.runs)) == (15, 14, 2)


def test_lines_of_an_older_beginning_do_not_count_whenever_they_were_recorded() -> None:
    """Main may record the old behaviour after a branch accepted its change: once they are merged, the change holds."""
    accepted = replace(LINE, run="20260102-000000-bbbbbb", passes=0, since="20260102-000000-bbbbbb")
    later_on_main = replace(LINE, run="20260103-000000-cccccc", passes=10)
    found = Baseline([LINE, accepted, later_on_main]).lookup(LINE.identity)
    assert found.record is not None
    assert (found.record.trials, found.record.passes) == (10, 0)
    assert found.since == accepted.since


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"content": "other"}, "the case changed"),
        ({"evaluators": "other"}, "its evaluators, thresholds or judge changed"),
        ({"agent": "b.py:agent"}, "its baseline was recorded with the agent app.py:agent"),
        ({"case": "other", "content": "other"}, "the case is new"),
    ],
)
def test_a_case_without_a_past_says_why(changed: dict[str, str], reason: str) -> None:
    found = Baseline([LINE]).lookup(replace(LINE.identity, **changed))
    assert found.record is None
    assert found.missing_because.startswith(reason)


SCORED = replace(LINE, checks=("exact", "polite"), patterns={"11": 6, "10": 3, "01": 1}, passes=6)


@pytest.mark.parametrize(
    ("checks", "trials", "passes"),
    [
        (("exact", "polite", "added"), 10, 6),
        (("exact",), 10, 9),
        (("exact", "polite with another threshold"), 10, 9),
        (("polite", "added"), 10, 7),
    ],
)
def test_evaluators_that_did_not_change_keep_their_history(checks: tuple[str, ...], trials: int, passes: int) -> None:
    found = Baseline([SCORED]).lookup(replace(SCORED.identity, evaluators="changed", checks=checks))
    assert found.record is not None and (found.record.trials, found.record.passes) == (trials, passes)
    assert found.checks == {"exact", "polite"} & set(checks)


def test_trials_under_all_present_evaluators_replace_the_history_of_some_once_there_are_enough() -> None:
    identity = replace(SCORED.identity, evaluators="changed", checks=("exact",))

    def later(trials: int) -> BaselineLine:
        patterns = {"1": trials}
        return replace(
            SCORED,
            run="later",
            evaluators="changed",
            checks=("exact",),
            patterns=patterns,
            trials=trials,
            passes=trials,
        )

    few, enough = (Baseline([SCORED, later(count)]).lookup(identity) for count in (2, 5))
    assert few.record is not None and (few.record.trials, few.record.passes) == (12, 11)
    assert enough.record is not None and (enough.record.trials, enough.checks) == (5, None)


def test_a_restart_counts_and_does_not_depend_on_the_clock() -> None:
    """The machine that restarted the case had a clock that was a year behind."""
    restarted = replace(LINE, run="20250101-000000-bbbbbb", since="20250101-000000-bbbbbb", restart=2, passes=0)
    earlier = replace(LINE, since="20260101-000000-aaaaaa", restart=1)
    found = Baseline([earlier, restarted]).lookup(LINE.identity)
    assert found.record is not None and (found.record.trials, found.record.passes) == (10, 0)


def test_a_run_that_was_resumed_after_it_was_accepted_replaces_its_line() -> None:
    more = replace(LINE, trials=12, passes=11)
    assert Baseline([more, LINE]).lines == (more,)


@given(st.lists(st.lists(NUMBERS, min_size=1, max_size=6), min_size=1, max_size=4))
def test_spreads_of_parts_add_up_to_the_spread_of_the_whole(parts: list[list[float]]) -> None:
    whole = [value for part in parts for value in part]
    pooled = SampleStats.pooled(SampleStats.of(part) for part in parts)
    assert pooled is not None
    assert pooled.count == len(whole)
    assert pooled.mean == pytest.approx(statistics.fmean(whole), abs=1e-6)
    if len(whole) > 1:
        assert pooled.deviation == pytest.approx(statistics.stdev(whole), rel=1e-6, abs=1e-3)


@given(st.text(max_size=60))
def test_whatever_a_line_holds_it_is_read_or_refused_with_a_reason(text: str) -> None:
    try:
        parse_line(text)
    except ValueError as error:
        assert str(error)


def test_a_file_is_written_whole_and_only_if_something_changed(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "desk.baseline.jsonl"
    assert write_baseline(path, Baseline([LINE]))
    assert not write_baseline(path, Baseline([LINE]))
    assert read_baseline(path).lines == (LINE,)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_the_baseline_of_a_suite_stands_beside_it() -> None:
    assert baseline_path("suites/desk.yaml") == Path("suites/desk.baseline.jsonl")
    assert baseline_path(None) == Path("proctor.baseline.jsonl")
