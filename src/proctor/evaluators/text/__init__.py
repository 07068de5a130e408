"""Evaluators of text: equality, keywords, patterns (`matching.py`) and word overlap (`overlap.py`).

In: the answer and the expected output of an `Evaluable`. Out: a score and a reason that quotes both. `comparison.py`,
`keywords.py` and `porter.py` hold the algorithms, which other packages use too.
"""
