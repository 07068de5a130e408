"""Collected by pytest, one test a case."""

from proctor import Case, Suite


def agent(question):
    return "Your order A-17 is shipped."


test_shop = Suite(
    "shop",
    agent=agent,
    cases=[
        Case("Where is A-17?", expected={"contains": "shipped"}, tags=["smoke"]),
        Case("Is A-17 shipped?", expected={"contains": "shipped"}),
    ],
)
