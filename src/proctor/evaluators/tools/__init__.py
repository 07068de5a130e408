"""Evaluators of tool calls: which were made, with which arguments, in which order and how often.

In: the expected and the actual calls of an `Evaluable`. Out: a score, a reason that names the differences, and `faults`
for reports. `calls.py` compares one call with another, `pairing.py` and `steps.py` decide which call belongs to which
expectation, `differences.py` puts the rest into words. `checks.py`, `trajectory.py` and `consistency.py` hold the
evaluators.
"""
