"""The store: one SQLite database of runs, cases, trials, scores, traces, judge calls and labels.

`Store` (store.py) writes finished trials and reads runs; `database.py` is the SQLite file below it. `schema.py` has the
tables and the migrations from every earlier version, `encoding.py` turns trials into rows and back, and `traces.py` and
`judge_cache.py` store traces and judge answers. `run_names.py` finds a run by what a user types, and `run_files.py`
exports and imports a run as one file. The engine writes; reports, the viewer and the command line read.
"""
