"""The limits that the benchmarks check. Each is a ratio within one run, a count or a size; none is a time."""

ONE_CASE = 0.5
"""One case from start: at most this share of each peer's time."""
MANY_CASES = 1.0
"""2,000 cases: less than this share of each peer's CPU time, with start-up."""
GROWTH = 10.5
"""Ten times the cases: at most this many times the time."""
MEMORY_MB = 1024
"""100,000 cases: at most this much memory."""
DISTRIBUTIONS = 28
"""The base install, Proctor included."""
INSTALL_MB = 80
"""The base install with compiled files."""
FALSE_ALARMS = 0.05
"""Red builds of the gate if nothing changed."""
GATE_TRIALS = 1.6
"""Trials per case of the gate if nothing changed."""
