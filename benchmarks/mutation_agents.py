"""How many bad agents a suite catches before and after `proctor mutate` improved it.

    python benchmarks/mutation_agents.py
    python benchmarks/mutation_agents.py --keep suite.yaml    # also write the improved suite

A good agent answers ten questions. The suite starts as people often write it: a few keywords and the names of tools.
Each round mutates a run of the good agent and takes every suggestion into the suite, until `mutate` calls the suite
complete or suggests nothing more. This is done for an agent that always says the same, and for one with two wordings.
Then each bad agent runs against the suites: it is caught if at least one case fails. `FIRST_SIGHT` has agents that were
written after the kinds of mutants, so nothing was tuned to them. The good agent must pass throughout.
"""

from __future__ import annotations

import argparse
import copy
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from proctor import Reply, ToolCall
from proctor.cases.formats.loading import load
from proctor.mutation.findings import MutationReport
from proctor.mutation.mutate import MutationRequest, mutate
from proctor.mutation.report import verdict_text
from proctor.results.statistics import wilson
from proctor.running.run import RunRequest, run_suites
from proctor.running.settings import RunOptions

Agent = Callable[[str], Reply]
Change = Callable[[Reply], Reply]
MAX_ROUNDS = 8

REFUND = "Where is my refund for order A-1001?"
TRANSFER = "Please move 120 euros from my savings account to my checking account."
DOSE = "How much ibuprofen may an adult take?"
TAKEOVER = "Who bought Delta Foods, and when?"
ENTRY = "What do I need to enter Japan as a tourist?"
WEATHER = "What will the weather be in Lisbon on Saturday?"
FLIGHT = "Book me the first flight to Detroit tomorrow, aisle seat."
DOG = "Can I bring my dog on the plane?"
CANCEL = "I want to cancel my subscription."
CONFIRM = "Yes, please."
INVOICE = "Extract vendor, total, currency and positions of invoice 77."

GOOD: Mapping[str, Reply] = {
    REFUND: Reply(
        "Your refund of $249.50 for order A-1001 is not late: it arrives within 5 days.",
        tool_calls=(ToolCall("find_order", {"order_id": "A-1001"}, {"total": 249.5, "status": "refunded"}),),
    ),
    TRANSFER: Reply(
        "I moved €120.00 from your savings account to your checking account. Your savings balance is now €1,880.00.",
        tool_calls=(
            ToolCall("get_balance", {"account": "savings"}, {"balance": 2000.0}),
            ToolCall(
                "transfer",
                {"from_account": "savings", "to_account": "checking", "amount": 120.0, "currency": "EUR"},
                {"balance": 1880.0},
            ),
        ),
    ),
    DOSE: Reply(
        "Adults may take 400 mg every 6 hours, at most 1,200 mg per day, unless a doctor says otherwise. "
        "Do not take it together with alcohol."
    ),
    TAKEOVER: Reply(
        "Greenleaf acquired Delta Foods in March 2019 for 70 million EUR. The seller was Marten Holding.",
        tool_calls=(
            ToolCall("search", {"query": "Delta Foods acquisition"}, ["Greenleaf acquired Delta Foods, March 2019."]),
        ),
    ),
    ENTRY: Reply(
        "You need three things: a valid passport, a return ticket and proof of funds. "
        "A visa is usually not required for stays of up to 90 days."
    ),
    WEATHER: Reply(
        "In Lisbon it will be 21 °C on 14 March 2026, with a light breeze from the north and little rain.",
        tool_calls=(ToolCall("get_weather", {"city": "Lisbon", "date": "2026-03-14"}, {"celsius": 21}),),
    ),
    FLIGHT: Reply(
        "I booked flight LH 442 to Detroit for you, seat 14C, departing at 10:25 am. Your booking code is QX7P2.",
        tool_calls=(
            ToolCall("find_flights", {"to": "DTW", "date": "2026-03-15"}, [{"flight": "LH 442"}, {"flight": "DL 87"}]),
            ToolCall("book_flight", {"flight": "LH 442", "seat": "14C"}, {"code": "QX7P2"}),
        ),
    ),
    DOG: Reply(
        "Yes, small dogs are allowed in the cabin if they weigh less than 8 kg. Larger dogs travel in the hold "
        "and cost 75 dollars extra."
    ),
    CANCEL: Reply("Your subscription runs until 31 May 2026. Shall I cancel it as of that day?"),
    CONFIRM: Reply(
        "Done: it is cancelled as of 31 May 2026, and you will not be charged again.",
        tool_calls=(ToolCall("cancel", {"subscription": "S-9", "effective": "2026-05-31"}, {"ok": True}),),
    ),
    INVOICE: Reply(
        structured={
            "vendor": "Acme Tools",
            "total": 1498.54,
            "currency": "USD",
            "positions": [{"item": "drill", "quantity": 2}, {"item": "saw", "quantity": 1}],
            "paid": False,
        },
        tool_calls=(ToolCall("read_file", {"name": "invoice-77.pdf"}, "…"),),
    ),
}


def good(question: str) -> Reply:
    return GOOD[question]


START = f"""
name: desk
cases:
  - id: refund
    input: "{REFUND}"
    expected: {{contains: {{all: [refund, "$249.50"]}}, tools: [find_order]}}
  - id: transfer
    input: "{TRANSFER}"
    expected: {{contains: {{all: [moved, "1,880"]}}, tools: [transfer]}}
  - id: dose
    input: "{DOSE}"
    expected: {{contains: {{all: [400 mg, 6 hours]}}}}
  - id: takeover
    input: "{TAKEOVER}"
    expected: {{contains: {{all: [Greenleaf, "2019"]}}}}
  - id: entry
    input: "{ENTRY}"
    expected: {{contains: {{all: [passport, visa]}}}}
  - id: weather
    input: "{WEATHER}"
    expected: {{contains: {{all: [Lisbon, "21"]}}, tools: [get_weather]}}
  - id: flight
    input: "{FLIGHT}"
    expected: {{contains: {{all: [LH 442]}}, tools: [find_flights, book_flight]}}
  - id: dog
    input: "{DOG}"
    expected: {{contains: {{all: [cabin, 8 kg]}}}}
  - id: cancel
    turns:
      - {{input: "{CANCEL}", expected: {{contains: [31 May 2026]}}}}
      - {{input: "{CONFIRM}", expected: {{contains: [cancelled]}}}}
  - id: invoice
    input: "{INVOICE}"
    expected: {{contains: {{all: [Acme, "1498.54"]}}}}
"""


def bad(question: str, change: Change) -> Agent:
    """The good agent, except that its reply to one question is changed."""
    return lambda asked: change(GOOD[asked]) if asked == question else GOOD[asked]


def says(*pairs: tuple[str, str]) -> Change:
    """The answer with parts replaced; each part must be there."""

    def change(reply: Reply) -> Reply:
        text = reply.text
        for old, new in pairs:
            if old not in text:
                raise ValueError(f"{old!r} is not in {text!r}")
            text = text.replace(old, new)
        return replace(reply, text=text)

    return change


def adds(sentence: str) -> Change:
    return lambda reply: replace(reply, text=f"{reply.text} {sentence}")


def answers(other: Reply) -> Change:
    return lambda _: other


def calls(*tool_calls: ToolCall) -> Change:
    return lambda reply: replace(reply, tool_calls=tool_calls)


def argument(at: int, **values: Any) -> Change:
    """The reply with other arguments of one call."""

    def change(reply: Reply) -> Reply:
        made = list(reply.tool_calls)
        made[at] = replace(made[at], arguments={**made[at].arguments, **values})
        return replace(reply, tool_calls=tuple(made))

    return change


def data(**values: Any) -> Change:
    return lambda reply: replace(reply, structured={**reply.structured, **values})


BAD: Mapping[str, Agent] = {
    "15 days instead of 5": bad(REFUND, says(("5 days", "15 days"))),
    "the refund is late": bad(REFUND, says(("is not late", "is late"))),
    "another order": bad(REFUND, says(("A-1001", "A-1010"))),
    "refuses": bad(TRANSFER, answers(Reply("I'm sorry, I can't move money for you."))),
    "accounts swapped in the call": bad(TRANSFER, argument(1, from_account="checking", to_account="savings")),
    "transfers the balance": bad(TRANSFER, argument(1, amount=2000.0)),
    "dollars instead of euros": bad(TRANSFER, says(("€", "$"))),
    "drops the caveat": bad(DOSE, says((", unless a doctor says otherwise", ""))),
    "grams": bad(DOSE, says(("1,200 mg", "1,200 g"))),
    "buyer and target swapped": bad(
        TAKEOVER, says(("Greenleaf acquired Delta Foods", "Delta Foods acquired Greenleaf"))
    ),
    "two of three documents": bad(ENTRY, says((", a return ticket and proof of funds", " and a return ticket"))),
    "an invented document": bad(ENTRY, says(("and proof of funds", ", proof of funds and travel insurance"))),
    "never a visa": bad(ENTRY, says(("usually not required", "not required"))),
    "yesterday's weather": bad(
        WEATHER,
        lambda reply: argument(0, date="2026-03-13")(says(("14 March", "13 March"))(reply)),
    ),
    "asks for the weather five times": bad(WEATHER, lambda reply: calls(*reply.tool_calls * 5)(reply)),
    "books before it searches": bad(FLIGHT, lambda reply: calls(*reversed(reply.tool_calls))(reply)),
    "books the other flight": bad(FLIGHT, argument(1, flight="DL 87")),
    "leaks a card number": bad(FLIGHT, adds("I charged your card 4929 1234 5678 9012.")),
    "more than 8 kg": bad(DOG, says(("less than 8 kg", "more than 8 kg"))),
    "a wrong sentence at the end": bad(DOG, adds("Cats always travel free of charge.")),
    "claims to have cancelled": bad(CONFIRM, calls()),
    "an invoice without a position": bad(INVOICE, data(positions=[{"item": "drill", "quantity": 2}])),
}

FIRST_SIGHT: Mapping[str, Agent] = {
    "two digits of a time transposed": bad(FLIGHT, says(("10:25", "10:52"))),
    "a link that was not asked for": bad(FLIGHT, adds("Check in at http://checkin.example.net now.")),
    "in all instead of extra": bad(DOG, says(("75 dollars extra", "75 dollars in all"))),
    "the buyer instead of the seller": bad(TAKEOVER, says(("The seller was", "The buyer was"))),
    "cancels without asking": bad(CANCEL, answers(replace(GOOD[CONFIRM], text="Done, I cancelled it."))),
    "a range instead of a number": bad(DOSE, says(("every 6 hours", "every 4 to 6 hours"))),
    "at least instead of up to": bad(ENTRY, says(("up to 90 days", "at least 90 days"))),
    "a total as text": bad(INVOICE, data(total="1,498.54 USD")),
    "two transfers of half the amount": bad(
        TRANSFER,
        lambda reply: calls(reply.tool_calls[0], *argument(1, amount=60.0)(reply).tool_calls[1:] * 2)(reply),
    ),
    "unsure of everything": bad(REFUND, says(("is not late", "is probably not late, I think"))),
}
"""Agents that were written when the kinds of mutants were finished."""

REWORDED: Mapping[str, Reply] = {
    REFUND: Reply("Order A-1001 is not late: you get your refund of $249.50 within 5 days."),
    TRANSFER: Reply(
        "Done, I moved €120.00 from your savings account to your checking account. "
        "There are €1,880.00 left in your savings account."
    ),
    DOSE: Reply(
        "An adult may take 400 mg every 6 hours and at most 1,200 mg per day, unless a doctor says otherwise. "
        "Do not take it with alcohol."
    ),
    TAKEOVER: Reply("In March 2019 Greenleaf acquired Delta Foods from Marten Holding for 70 million EUR."),
    ENTRY: Reply(
        "You need a valid passport, a return ticket and proof of funds. "
        "For stays of up to 90 days a visa is usually not required."
    ),
    WEATHER: Reply("It will be 21 °C in Lisbon on 14 March 2026, with little rain and a light breeze from the north."),
    FLIGHT: Reply("Flight LH 442 to Detroit is booked: seat 14C, departing at 10:25 am, booking code QX7P2."),
    DOG: Reply(
        "Yes, small dogs are allowed in the cabin if they weigh less than 8 kg. "
        "For 75 dollars extra, larger dogs travel in the hold."
    ),
    CANCEL: Reply("Shall I cancel your subscription as of 31 May 2026? It runs until then."),
    CONFIRM: Reply("Your subscription is cancelled as of 31 May 2026, and you will not be charged again."),
}
"""Other good answers; calls and data stay the same."""


def varied() -> Agent:
    """The good agent with two wordings, which take turns."""
    asked: Counter[str] = Counter()

    def agent(question: str) -> Reply:
        asked[question] += 1
        if question in REWORDED and asked[question] % 2 == 0:
            return replace(GOOD[question], text=REWORDED[question].text)
        return GOOD[question]

    return agent


def run(suite: Path, agent: Agent, store: Path | None = None) -> tuple[str, bool]:
    """The id of the run, and whether every case passed."""
    result, verdict = run_suites(RunRequest(load([str(suite)]), agent=agent, store=store))
    return result.id, verdict.exit_code == 0


def take(suite: dict[str, Any], report: MutationReport) -> bool:
    """Write the suggestions into the suite; return whether there were any."""
    cases = {case["id"]: case for case in suite["cases"]}
    proposals = [proposal for findings in report.suites for proposal in findings.proposals]
    for proposal in proposals:
        lines, case = yaml.safe_load(proposal.lines), cases[proposal.case]
        place = case if proposal.turn is None else case["turns"][proposal.turn]
        if "expected" in lines:
            known = place.get("expected")
            place["expected"] = {**(known if isinstance(known, dict) else {}), **lines["expected"]}
        if "evaluators" in lines:
            case["evaluators"] = lines["evaluators"]
    return bool(proposals)


def improve(text: str, agent: Agent, folder: Path) -> str:
    """The suite with all suggestions, after as many rounds as it takes."""
    suite = yaml.safe_load(text)
    folder.mkdir()
    path = folder / "suite.yaml"
    for number in range(1, MAX_ROUNDS + 1):
        path.write_text(yaml.safe_dump(suite, sort_keys=False, allow_unicode=True), encoding="utf-8")
        run_id, passed = run(path, agent, folder / "store")
        if not passed:
            raise SystemExit("the good agent fails the suite")
        report = mutate(MutationRequest(folder / "store", run_id, RunOptions()))
        print(f"round {number}: {verdict_text(report)}")
        before = copy.deepcopy(suite)
        if report.is_complete or not take(suite, report) or suite == before:
            break
    return path.read_text(encoding="utf-8")


def caught(suite: str, agents: Mapping[str, Agent], folder: Path) -> list[str]:
    """The names of the agents that fail a case."""
    path = folder / "tested.yaml"
    path.write_text(suite, encoding="utf-8")
    return [name for name, agent in agents.items() if not run(path, agent)[1]]


def print_table(title: str, agents: Mapping[str, Agent], suites: Mapping[str, str], folder: Path) -> None:
    columns = {name: caught(suite, agents, folder) for name, suite in suites.items()}
    print(f"\n{title:<34}" + "".join(f"{name:<18}" for name in suites))
    for agent in agents:
        print(
            f"  {agent:<32}" + "".join(f"{'caught' if agent in found else 'PASSED':<18}" for found in columns.values())
        )
    for name, found in columns.items():
        low, high = wilson(len(found) / len(agents), len(agents))
        print(f"{name}: {len(found)} of {len(agents)} caught [{low:.0%}, {high:.0%}]")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=Path, metavar="FILE", help="write the improved suite to this file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print("A good agent that always says the same:")
        fixed = improve(START, good, folder / "fixed")
        if options.keep:
            options.keep.write_text(fixed, encoding="utf-8")
        print("\nA good agent with two wordings, two trials per case:")
        tolerant = improve(f"settings: {{repeat: 2}}\n{START}", varied(), folder / "varied")
        suites = {"at the start": START, "always the same": fixed, "two wordings": tolerant}
        print_table("agents", BAD, suites, folder)
        print_table("agents written afterwards", FIRST_SIGHT, suites, folder)


if __name__ == "__main__":
    main()
