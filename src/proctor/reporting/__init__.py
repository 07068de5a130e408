"""Reports of a run: what people and programs read after, or while, it runs.

In: a `Run` and its `RunVerdict` (`proctor.results`). Out: text. `terminal/` prints a run while it runs; `html/`,
`markdown/`, `json_report.py`, `junit.py` and `tables.py` write files; `github_comment.py` posts a comment. A reporter
computes no verdict and reads nothing but the run. All of them explain a trial with `explain.py`, and take their words
for numbers and outcomes from `wording.py`.

Called by the command line, the pytest plugin and notebooks; the viewer uses the same views and templates. A report is
declared once, in `reporters.py` or by a plugin.
"""
