"""Mocked tools."""

from proctor import Case, Suite, tool


@tool
def charge(card, amount):
    raise SystemExit("a real card was charged")


assert Suite(
    "till",
    agent=lambda q: "Paid: " + charge("4111", amount=12)["receipt"],
    cases=[
        Case("Pay 12.", expected={"contains": "R-1"}, mocks={"charge": {"result": {"receipt": "R-1"}}}),
    ],
).run()
