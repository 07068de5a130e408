"""A suite."""

from proctor import Case, Suite


def agent(question):
    return "Your order A-17 is shipped."


suite = Suite(
    "shop",
    agent=agent,
    cases=[
        Case("Where is my order A-17?", expected={"contains": ["shipped"]}),
        Case("My order A-18 never came.", expected={"contains": {"all": ["sorry", "refund"]}}),
    ],
)
suite.run().print()
