"""What runs leave behind, and what they come to.

Finished trials come in from the engine, one by one, and are stored before anyone hears of them (`store/`). A `Run`
(run.py) is what is known of a run as a whole, and trials that are read when they are used. `verdict(run)` (verdict.py)
is the only code that says whether it passed; `comparison/` compares two runs. Reports, the viewer, the gate and the
command line read from here.
"""
