"""Results."""

from proctor import Case, Suite

run = Suite(
    "letters", [Case("a", id="good"), Case("b", id="bad")], agent=lambda q: q, evaluators=[lambda output: output == "a"]
).run(repeat=3)
assert not run and len(run) == 2 and run.pass_rate == 0.5 and run.pass_rate.of == 2
for case in run.failed:
    print(case.id, case.output, case.reason, case.trials[0].scores[0].value)
print(run["bad"].pass_rate, run.trials[0].output, run.verdict, repr(run))
