"""Calibration: how well does a judge agree with people?

In: a file of rows that people labelled (`labelled_rows.py`), and a judge. The judge scores every row, and some of
them twice (`measurement.py`). Out: agreement, ranking and repeatability with their intervals, next to the result of
plain word overlap (`statistics.py`, `report.py`). The rows are stored, and reports of later runs with the same
judge and evaluator show a corrected pass rate; that part is in the core (`proctor.results.judge_calibration`,
`proctor.results.agreement`), because a run must be reported the same with and without this folder.

`plugin.py` declares the command `proctor calibrate` (`command.py`). Nothing else in Proctor imports this folder:
delete it and its line in `proctor.plugins.SHIPPED`, and the rest works without it.
"""
