"""Arms."""

from proctor import Case, Suite, compare

run = Suite("sums", [Case(f"{n}+1", str(n + 1)) for n in range(12)]).run(
    arms={"old": lambda q: "1", "new": lambda q: str(eval(q))}
)
print(run.arms["old"].pass_rate, run.arms["new"].pass_rate)
change = compare(run.arms["old"], run.arms["new"])
assert change.verdict == "improvement" and len(change.fixed) == 11 and not change.broken
