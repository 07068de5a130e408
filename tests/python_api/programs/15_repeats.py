"""Repeats."""

import itertools

from proctor import Case, Suite

answers = itertools.cycle(["yes", "yes", "no"])
run = Suite(
    "flaky", [Case("Ready?", "yes", id="ready")], agent=lambda q: next(answers), criteria={"trials": "majority"}
).run(repeat=9, parallel=1)
assert run and run["ready"].is_flaky
print(f"{run['ready'].pass_rate:.2f}, at least {run['ready'].pass_rate.low:.2f}")
