"""Tools."""

import re

from proctor import Case, Suite, tool


@tool
def refund(order, amount):
    return {"receipt": "R-1"}


assert Suite(
    "shop",
    agent=lambda q: refund("A-18", amount=20)["receipt"],
    cases=[
        Case(
            "A-18 never came.",
            expected={
                "contains": "R-1",
                "tools": [{"name": "refund", "args": {"order": re.compile("A-[0-9]+"), "amount": lambda x: x <= 20}}],
            },
        )
    ],
).run()
