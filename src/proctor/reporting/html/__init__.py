"""The HTML report, and what notebooks show.

In: a run and its verdict. Out: HTML, rendered by Jinja2 (`environment.py`) from `reporting/templates`. `run_view.py`
and `trial_view.py` compute what the templates show; the viewer uses both. `report_page.py` writes the report as one
file; `notebook.py` is what a `Run` shows in Jupyter.
"""
