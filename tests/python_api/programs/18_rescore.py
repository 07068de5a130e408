"""Rescore."""

from proctor import Case, Suite

calls = []
run = Suite(
    "shop",
    [Case("Hi")],
    agent=lambda q: calls.append(q) or "It is shipped.",
    evaluators=[lambda output: "sent" in output],
).run()
better = run.rescore(evaluators=[lambda output: "shipped" in output])
assert not run and better and len(calls) == 1
