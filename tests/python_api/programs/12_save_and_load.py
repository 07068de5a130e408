"""Save and load."""

from proctor import Case, Contains, Run, Suite

suite = Suite(
    "shop",
    [Case("Where is A-17?", "It is shipped.", tags=["smoke"])],
    agent="oracle",
    evaluators=[Contains(any=["shipped"])],
)
suite.save("shop.yaml")
assert Suite.load("shop.yaml") == suite
suite.run(store=True).save("run.jsonl")
assert Run.load("run.jsonl") and Run.load("last")
