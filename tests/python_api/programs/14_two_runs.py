"""Two runs."""

from proctor import Case, Suite, compare


def agent(question):
    return "Your order A-17 is shipped."


suite = Suite("shop", [Case("Where is A-17?", expected={"contains": "shipped"}, id="shipped")])
change = compare(suite.run(agent), suite.run(lambda q: "I do not know."))
assert [case.id for case in change.broken] == ["shipped"]
change.print()
