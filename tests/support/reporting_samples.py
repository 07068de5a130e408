"""Runs made in memory, with fixed times, for the tests of the reports."""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from builders import START, score, single, trial

from proctor.agents.reply import Reply, ToolCall, Usage
from proctor.cases.matchers import Equals, Regex
from proctor.cases.suite import Case, Criteria, Expected, ExpectedCall, Keywords, NamedData, Turn
from proctor.results.run import Run
from proctor.results.score import Outcome
from proctor.results.suite_info import SuiteInfo
from proctor.results.trial import Trial, TrialSummary
from proctor.results.verdict import verdict

PASSED, FAILED, ERROR, SKIPPED, PENDING = Outcome


def make_run(trials: Sequence[Trial], *, stream: Iterable[Trial] | None = None, **rest: Any) -> Run:
    """A run of these trials, one suite per suite name; `stream` replaces what reports iterate over."""
    names = list(dict.fromkeys(t.suite for t in trials)) or ["support"]
    placed = [replace(t, position=position) for position, t in enumerate(trials)]
    suites = tuple(
        SuiteInfo(
            name=name,
            path=f"{name}.yaml",
            format="native",
            agent="faq-bot",
            agent_fingerprint="f00d",
            criteria=rest.get("criteria", Criteria()),
            cases=len({t.case.id for t in trials if t.suite == name}),
            planned=sum(t.suite == name for t in trials),
        )
        for name in names
    )
    rest.pop("criteria", None)
    fields = {
        "id": "20260101-000000-cafe",
        "started_at": START,
        "finished_at": START + 12.5,
        "environment": {"proctor_version": "0.1.0", "python_version": "3.11.9", "os": "Linux 6.1"},
        "store": ".proctor",
        **rest,
    }
    return Run(
        suites=suites,
        summaries=[TrialSummary.of(t) for t in placed],
        trials=placed if stream is None else stream,
        **fields,
    )


def small_run() -> Run:
    """Everything once: a pass, a wrong answer, wrong tools, a broken judge, a skip, a wait, a conversation."""
    return make_run([*_support_trials(), *_booking_trials()])


def repeated_run() -> Run:
    """The small run with five repeats of cases that have long names, as a terminal meets them while it is made."""
    tools = (ExpectedCall("order_status", {"order": Equals("A-17")}), ExpectedCall("refund", {"order": Equals("A-17")}))
    lost = single("order-that-never-came-and-must-be-refunded-in-full", "My order A-17 never came.", tools=tools)
    wrong = Reply("Your order A-17 is lost.", (ToolCall("order_status", {"order": "A-17"}, "lost"),), Usage(120, 12))
    missing = "1 of 2 expected tools were called as expected: missing refund(order='A-17')"
    failed = score(FAILED, 0.5, "ExpectedTools", threshold=1.0, reasoning=missing)
    trials = [trial(lost, FAILED, None, failed, replies=(wrong,), number=n, suite="orders") for n in (1, 2, 4)]
    crash = "the agent raised KeyError: 'no customer has this address' (desk.py:41)"
    trials += [trial(lost, FAILED, None, replies=(), number=n, suite="orders", reason=crash) for n in (3, 5)]
    trials.sort(key=lambda one: one.number)
    trials += [trial("returns", PASSED, "Within 30 days.", number=n, suite="orders") for n in range(1, 6)]
    trials += [
        trial("opening-hours-on-a-public-holiday", FAILED if n == 2 else PASSED, number=n, suite="orders")
        for n in range(1, 6)
    ]
    reason = "the warehouse has no such order before the first of next month"
    trials += [trial("old-contract", SKIPPED, None, number=n, suite="orders", reason=reason) for n in range(1, 6)]
    run = make_run([*_support_trials(), *trials], id="20260101-000000-cafe00", configured_judge="embedded")
    made = Counter((each.suite, each.case.id) for each in run.trials)
    run.planned_trials = {address: count for address, count in made.items() if count > 1}
    return run


def _support_trials() -> list[Trial]:
    refund = single(
        "refund-policy",
        output="You can return items within 30 days.",
        contains=Keywords(any=("refund", "return"), all=("30 days",)),
        tools=(ExpectedCall("lookup_policy", {"topic": Equals("refund"), "id": Regex("P-[0-9]+")}),),
    )
    lookup = ToolCall("lookup_policy", {"topic": "shipping"}, {"text": "Ships in 2 days."}, duration_ms=12.0)
    broken = ToolCall("escalate", raw_arguments="{not json", error="ValueError: no agent on duty")
    return [
        trial("opening-hours", PASSED, "We open at nine.", score(reasoning="the answers are equal")),
        trial(
            refund,
            FAILED,
            None,
            score(FAILED, 0.0, reasoning="the answers differ at character 1"),
            score(PASSED, 1.0, "Contains"),
            score(FAILED, 0.25, "ExpectedTools", reasoning='lookup_policy: topic expected "refund", got "shipping"'),
            replies=(Reply("We have no refunds.\nSorry | really.", (lookup, broken), Usage(812, 64, 0.0031, 2)),),
            duration_ms=1_240.0,
            attempts=2,
        ),
        trial(
            "tone",
            ERROR,
            "Certainly!",
            score(PASSED, 0.8, "Politeness", report_only=True),
            score(ERROR, None, "Faithfulness", reasoning="JudgeFailed: the judge timed out after 30 s"),
            warnings=("the reply had no usage; cost is not known",),
        ),
        trial("old-contract", SKIPPED, None, reason="the contract has ended", duration_ms=0.0),
        trial("handwriting", PENDING, "Dear Sir", score(PENDING, None, "Human", reasoning="waits for a person")),
        trial("greeting", PASSED, "Hello!", score()),
        trial("greeting", FAILED, None, number=2, reason="the agent raised KeyError: 'name'"),
    ]


def _booking_trials() -> list[Trial]:
    turns = (
        Turn("I need a table for two.", Expected(output="For which day?")),
        Turn("Friday", Expected(output="Booked.", tools=(ExpectedCall("book"), ExpectedCall("notify")))),
        Turn("Thanks!"),
    )
    conversation = Case(id="table-for-two", turns=turns, final_state={"booked": True})
    replies = (
        Reply("For which day?", usage=Usage(100, 10)),
        Reply("Done.", (ToolCall("book", {"day": "Friday"}, {"ok": True}), ToolCall("search", {"q": "tables"}))),
        Reply("", outputs=(NamedData("text", "Bye"), NamedData("mood", "glad")), state={"booked": False}),
    )
    return [
        trial(
            conversation,
            FAILED,
            None,
            score(PASSED, 1.0, turn=0),
            score(FAILED, 0.496, turn=1, reasoning="'Done.' is not 'Booked.'"),
            score(FAILED, 0.0, "FinalState", reasoning="booked is false"),
            replies=replies,
            suite="booking",
            duration_ms=65_400.0,
        ),
        trial("cancel", PASSED, "Cancelled.", suite="booking", reused=True),
    ]


def report(reporter: Any, run: Run) -> str:
    """What a reporter (a function, or a module with `write`) writes of a run."""
    out = io.StringIO()
    getattr(reporter, "write", reporter)(run, verdict(run), out)
    return out.getvalue()


def matches_golden(name: str, text: str) -> bool:
    """Whether a document is the one on record; UPDATE_GOLDEN=1 records it again."""
    path = Path(__file__).parent / "golden" / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8", newline="\n")
    return path.read_text(encoding="utf-8") == text


class OnePass:
    """Trials that can be iterated again and again but never exist all at once; counts how many were made."""

    def __init__(self, count: int, make: Any) -> None:
        self._count = count
        self._make = make
        self.made = 0

    def __iter__(self) -> Any:
        for index in range(self._count):
            self.made += 1
            yield self._make(index)


HOSTILE = (
    "\x1b[2J\x1b]0;owned\x07 <script>alert(1)</script> ```\n# Heading\n| a | b |\n|---|---|\n"
    "[x](javascript:1) \u202e\ud800 <img src=x onerror=y> ok"
)
"""An answer that tries to repaint a terminal, to break out of Markdown and to be HTML."""
