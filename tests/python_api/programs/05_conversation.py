"""A conversation."""

from proctor import Case, Expected, Suite, Turn


def talker(question, history):
    return f"You said {history[0][0]!r} before." if history else "Hello!"


assert Suite(
    "talk",
    agent=talker,
    cases=[
        Case(
            id="remembers",
            turns=[
                "Hi there",
                {"input": "What did I say?", "expected": {"contains": "hi there"}},
                Turn("And now?", Expected(contains=["before"], tools=[])),
            ],
        )
    ],
).run()
