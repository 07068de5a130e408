"""The Markdown report of a run, and what CI systems show of it.

In: a run and its verdict, for a comment also a comparison. Out: Markdown: the whole report (`report.py`), the comment
on a pull request and GitHub's step summary (`ci_pages.py`). Text of agents passes through `escaping.py`, so that it
cannot become a link, a heading or HTML. Called through `reporters.py` and by `proctor compare --pr`.
"""
