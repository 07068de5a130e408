"""Compares two runs: which cases broke, which were fixed, and whether luck explains the difference.

`compare_runs` (compare.py) takes two runs and returns a `Comparison` (comparison.py). It uses `pairing.py`, which finds
the cases that both runs have, `significance.py`, which has the tests and intervals, and `alignment.py`, which finds the
first difference between two conversations (`divergence.py`). The command line, reports and the viewer call it; the
gate uses the alignment.
"""
