"""What a run prints on a terminal, a pipe or a CI log.

In: a run, trial by trial (`progress.py` listens to the engine), or a finished run (`proctor show`). Out: lines on a
`Screen` (`screen.py`), which wraps them, colors them, and escapes everything that an agent could use to control the
terminal. `run_text.py` prints the start, the trials and the summary; `case_blocks.py` a case with several trials;
`facts.py` why a trial failed; `comparison_screen.py` the comparison of two runs.
"""
