"""Runs, their trials and scores, and what follows from them.

The engine passes in finished trials, one by one; each is in the store (`store/`) before it is reported. A `Run`
(run.py) has the facts about one `proctor test` and its trials, which are read when they are used. `verdict(run)`
(verdict.py) is the only code that decides whether a run passed, `reasons.py` decides which reason is shown first, and
`comparison/` compares two runs. Judges have `judge_usage.py` (calls and cost), `judge_calibration.py` and
`human_labels.py` (how far people agree with them). Reports, the viewer, the gate and the command line read from here.
"""
