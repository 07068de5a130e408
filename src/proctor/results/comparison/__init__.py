"""Two runs side by side: which cases broke, and whether a difference is more than luck.

`comparing.py` takes two runs and gives a `Comparison` (comparison.py): `pairing.py` finds the cases that both have,
`significance.py` has the tests and intervals, `alignment.py` shows where two conversations part.
Reports, the viewer and the gate use it.
"""
