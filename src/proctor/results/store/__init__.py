"""The store: one SQLite database of runs, cases, trials, scores, traces, judge calls and labels.

`Store` (store.py) writes finished trials and reads runs; `schema.py` has the tables and leads to them from every
earlier version; `encoding.py` turns trials into rows and back; `run_files.py` writes and reads a run as one file.
The engine writes, everyone else reads.
"""
