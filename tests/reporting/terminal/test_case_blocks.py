"""A case that runs several times is printed once, when its last trial is stored."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from reporting_samples import ERROR, FAILED, PASSED, SKIPPED, make_run, score, trial

from proctor.reporting.terminal.progress import LiveTerminal, PlainTerminal
from proctor.results.run import Run
from proctor.results.trial import Trial
from proctor.results.verdict import verdict


def repeated(trials: Sequence[Trial], **rest: object) -> Run:
    run = make_run(trials, **rest)
    made = Counter((each.suite, each.case.id) for each in trials)
    run.planned_trials = {address: count for address, count in made.items() if count > 1}
    return run


def printed(run: Run, *, stored: Sequence[Trial] = (), **options: bool) -> str:
    """What the terminal prints of a run of which the trials in `stored` were there before."""
    out = io.StringIO()
    terminal = PlainTerminal(out, environ={}, **options)
    before = [each for each in run.summaries if any(each.number == one.number for one in stored)]
    terminal.started(replace(run, summaries=before), len(run.summaries), len(before))
    for each in run.trials:
        if all(each.number != one.number for one in stored):
            terminal.trial_done(each)
    terminal.finished(run, verdict(run))
    return out.getvalue()


def five(outcome: object = FAILED, case: str = "a", **rest: object) -> list[Trial]:
    return [trial(case, outcome, number=n, **rest) for n in range(1, 6)]


def test_a_case_that_fails_five_times_is_shown_once_with_one_example() -> None:
    text = printed(repeated([*five(), trial("b")]))

    assert len(re.findall("^FAIL ", text, re.MULTILINE)) == 1
    assert re.search(r"^FAIL   support/a 0/5 passed +0\.12s  ExactMatch 0\.00 < 0\.50$", text, re.MULTILINE)
    assert re.search(r"^       example +trial 1; the other 4 failed the same way$", text, re.MULTILINE)
    assert text.count("How long do refunds take?") == 1


def test_each_distinct_reason_is_counted() -> None:
    wrong = [trial("a", FAILED, f"{n}", score(FAILED, 0.0, reasoning=f"got '{n}'"), number=n) for n in (1, 2, 3)]
    crashed = [trial("a", FAILED, None, number=n, reason="the agent raised KeyError: 'x'") for n in (4, 5)]

    text = printed(repeated([*crashed, *wrong]))

    assert re.search(r"^       3 times +ExactMatch 0\.00 < 0\.50: got '1'$", text, re.MULTILINE)
    assert re.search(r"^       2 times +the agent raised KeyError: 'x'$", text, re.MULTILINE)
    assert re.search(r"^       example +trial 1$", text, re.MULTILINE)


def test_a_case_that_passes_sometimes_is_called_flaky_with_the_range_of_its_scores() -> None:
    text = printed(repeated([trial("a"), trial("a", FAILED, number=2), trial("a", number=3)]))

    assert re.search(
        r"^FAIL   support/a 2/3 passed +0\.12s  ExactMatch 0\.00\.\.1\.00 \(1 of 3 failed\)  FLAKY 2/3$",
        text,
        re.MULTILINE,
    )


def test_a_skip_and_a_warning_are_said_once_a_case() -> None:
    skipped = five(SKIPPED, "old", reason="the contract has ended")
    text = printed(repeated([*skipped, *five(PASSED, "new", warnings=("no usage",))]))

    assert text.count("the contract has ended") == 1
    assert text.count("no usage") == 1
    assert re.search(r"^SKIP   support/old +the contract has ended$", text, re.MULTILINE)
    assert re.search(r"^PASS   support/new 5/5 passed +0\.12s  ExactMatch 1\.00$", text, re.MULTILINE)


def test_a_case_is_printed_when_its_last_trial_is_stored_and_not_before() -> None:
    run = repeated(five())
    out = io.StringIO()
    terminal = PlainTerminal(out, environ={})
    terminal.started(replace(run, summaries=[]), 5, 0)
    for each in list(run.trials)[:4]:
        terminal.trial_done(each)
    assert "FAIL" not in out.getvalue()

    terminal.trial_done(list(run.trials)[4])

    assert "FAIL   support/a 0/5 passed" in out.getvalue()


def test_a_case_that_was_interrupted_is_shown_at_the_end_with_the_trials_that_ran() -> None:
    run = repeated(five()[:2], interrupted=True, note="interrupted; run it with --resume to continue")
    run.planned_trials = {("support", "a"): 5}

    assert re.search(r"^FAIL   support/a 0/2 passed .*\(2 of 5 trials run\)$", printed(run), re.MULTILINE)
    assert printed(run).startswith("support: 1 case, ")


def test_a_resumed_case_counts_the_trials_that_were_there() -> None:
    trials = five()

    text = printed(repeated(trials), stored=trials[:3])

    assert re.search(r"^FAIL   support/a 0/5 passed ", text, re.MULTILINE)


def test_the_live_display_tells_a_repeated_failure_once_and_no_pass() -> None:
    class FakeTerminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    out = FakeTerminal()
    run = repeated([*five(), *five(PASSED, "b")])
    terminal = LiveTerminal(out, environ={"TERM": "xterm", "COLUMNS": "120"})
    terminal.started(replace(run, summaries=[]), 10, 0)
    for each in run.trials:
        terminal.trial_done(each)
    terminal.finished(run, verdict(run))
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", out.getvalue())

    assert text.count("FAIL   support/a") == 1
    assert "PASS   support/b" not in text


def test_verbose_tells_every_trial() -> None:
    text = printed(repeated(five()), verbose=True)

    assert len(re.findall("^FAIL   support/a", text, re.MULTILINE)) == 5


def test_a_case_that_the_gate_asks_again_is_explained_once() -> None:
    run = make_run([trial("a", FAILED), trial("b"), *five()[1:]])

    text = printed(run)

    assert len(re.findall("^FAIL   support/a", text, re.MULTILINE)) == 1
    assert text.count("How long do refunds take?") == 1


def test_errors_beside_failures_are_counted_apart() -> None:
    broken = trial("a", ERROR, None, number=3, reason="the network was down")

    text = printed(repeated([trial("a", FAILED), trial("a", FAILED, number=2), broken]))

    assert "FAIL   support/a 0/3 passed, 1 error" in text
    assert re.search(r"^       1 time +the network was down$", text, re.MULTILINE)
