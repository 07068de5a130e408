"""The pages of `proctor view`: runs, cases, comparisons and grading in a browser, served on this machine.

In: stores, exported runs and baselines (`sources.py`). Out: HTML pages, one module per page (`*_page.py`, see
`pages.py`), rendered with the templates of the HTML report and of this package. `app.py` is the Starlette application,
`request_checks.py` rejects requests from elsewhere, `server.py` runs it, and `events.py` tells open pages what changed.
Grades are the only thing that the viewer writes. Called by `proctor view`.
"""
